// node is a simulated node for Kubernetes' own HPA tests.
//
//	node --kubeconfig FILE --socket PATH --name NAME
//
// The API server sends what it dials towards the cluster (pods, Services, the kubelet) to the socket as HTTP CONNECT: its
// --egress-selector-config-file names the socket for `cluster`. Pods run no program; the node answers for them.
package main

import (
	"context"
	"flag"
	"log"
	"net"
)

func main() {
	kubeconfig := flag.String("kubeconfig", "", "kubeconfig of the control plane")
	socket := flag.String("socket", "", "unix socket on which to serve HTTP CONNECT")
	name := flag.String("name", "node-1", "name of the node")
	cpu := flag.String("cpu", "64", "CPU capacity of the node")
	flag.Parse()

	services, err := newServices(*kubeconfig)
	if err != nil {
		log.Fatal(err)
	}
	n := newNode(services, *name, *cpu)
	go n.run(context.Background())
	serveUnix(*socket, connectProxy(func(ctx context.Context, address string) (net.Conn, error) {
		if isLocal(address) {
			return dialDirectly(ctx, address)
		}
		address, err := services.resolve(address)
		if err != nil {
			return nil, err
		}
		return n.dial(address)
	}))
}
