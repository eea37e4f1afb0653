"""The web page: shows what the operator decided and why; computes nothing."""
