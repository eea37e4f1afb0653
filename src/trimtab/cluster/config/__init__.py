"""Where the cluster is and who we are: kubeconfig files, service accounts, exec plugins, TLS."""
