package main

import (
	"context"
	"fmt"
	"math/rand"
	"net"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	discoverylisters "k8s.io/client-go/listers/discovery/v1"
	"k8s.io/client-go/tools/clientcmd"
)

// services is what is known of Services and their endpoints.
type services struct {
	client   kubernetes.Interface
	factory  informers.SharedInformerFactory
	services corelisters.ServiceLister
	slices   discoverylisters.EndpointSliceLister
}

func newServices(kubeconfig string) (*services, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS, config.Burst = 200, 400
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	f := informers.NewSharedInformerFactory(client, 0)
	return &services{client, f, f.Core().V1().Services().Lister(), f.Discovery().V1().EndpointSlices().Lister()}, nil
}

func (c *services) start(ctx context.Context) {
	c.factory.Core().V1().Services().Informer()
	c.factory.Discovery().V1().EndpointSlices().Informer()
	c.factory.Start(ctx.Done())
	c.factory.WaitForCacheSync(ctx.Done())
}

// pick returns a ready endpoint of a Service's port, at random, as kube-proxy would.
func (c *services) pick(ns, name string, port int32) (string, error) {
	svc, err := c.services.Services(ns).Get(name)
	if err != nil {
		return "", err
	}
	for _, p := range svc.Spec.Ports {
		if p.Port == port {
			return c.endpoint(svc, p.Name)
		}
	}
	return "", fmt.Errorf("service %s/%s has no port %d", ns, name, port)
}

func (c *services) endpoint(svc *corev1.Service, portName string) (string, error) {
	slices, err := c.slices.EndpointSlices(svc.Namespace).List(labels.SelectorFromSet(labels.Set{"kubernetes.io/service-name": svc.Name}))
	if err != nil {
		return "", err
	}
	var all []string
	for _, s := range slices {
		for _, p := range s.Ports {
			if p.Port == nil || (p.Name != nil && *p.Name != portName) {
				continue
			}
			for _, e := range s.Endpoints {
				if (e.Conditions.Ready == nil || *e.Conditions.Ready) && len(e.Addresses) > 0 {
					all = append(all, net.JoinHostPort(e.Addresses[0], strconv.Itoa(int(*p.Port))))
				}
			}
		}
	}
	if len(all) == 0 {
		return "", fmt.Errorf("service %s/%s has no ready endpoint", svc.Namespace, svc.Name)
	}
	return all[rand.Intn(len(all))], nil
}

// resolve turns the address of a Service into that of an endpoint, and leaves every other address alone.
func (c *services) resolve(address string) (string, error) {
	host, portText, err := net.SplitHostPort(address)
	if err != nil {
		return "", err
	}
	all, err := c.services.List(labels.Everything())
	if err != nil {
		return "", err
	}
	port, _ := strconv.Atoi(portText)
	for _, s := range all {
		if s.Spec.ClusterIP == host {
			return c.pick(s.Namespace, s.Name, int32(port))
		}
	}
	return address, nil
}
