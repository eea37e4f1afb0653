package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	crand "crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"log"
	"math/big"
	"net"
	"net/http"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
)

// node is a simulated node. Its pods run no program: what resource-consumer, agnhost resource-consumer-controller and
// agnhost external-metrics answer is answered here, and the CPU and memory they would use is counted here and reported to
// metrics-server as a kubelet tells it (/metrics/resource).
type node struct {
	*services
	name, cpu string
	port      int32
	cert      tls.Certificate
	mu        sync.Mutex
	pods      map[types.UID]*pod
	byIP      map[string]*pod
	next      int
}

func newNode(s *services, name, cpu string) *node {
	key, _ := ecdsa.GenerateKey(elliptic.P256(), crand.Reader)
	t := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(240 * time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"localhost"}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	der, err := x509.CreateCertificate(crand.Reader, t, t, key.Public(), key)
	if err != nil {
		log.Fatal(err)
	}
	return &node{services: s, name: name, cpu: cpu, pods: map[types.UID]*pod{}, byIP: map[string]*pod{},
		cert: tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}}
}

func (n *node) run(ctx context.Context) {
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{n.cert}})
	if err != nil {
		log.Fatal(err)
	}
	n.port = int32(l.Addr().(*net.TCPAddr).Port)
	go func() {
		log.Fatal((&http.Server{Handler: n.kubelet(), TLSNextProto: map[string]func(*http.Server, *tls.Conn, http.Handler){}}).Serve(l))
	}()
	for {
		if _, err := n.client.Discovery().ServerVersion(); err == nil {
			break
		}
		time.Sleep(500 * time.Millisecond)
	}
	for {
		if err := n.register(ctx); err == nil {
			break
		} else {
			log.Print(err)
		}
		time.Sleep(time.Second)
	}
	n.factory.Core().V1().Pods().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { n.seen(ctx, o.(*corev1.Pod)) },
		UpdateFunc: func(_, o any) { n.seen(ctx, o.(*corev1.Pod)) },
		DeleteFunc: func(o any) {
			if d, ok := o.(cache.DeletedFinalStateUnknown); ok {
				o = d.Obj
			}
			n.gone(o.(*corev1.Pod).UID)
		},
	})
	n.start(ctx)
	log.Printf("node %s: up, kubelet on %d", n.name, n.port)
	go n.heartbeat(ctx)
	n.burn()
}

func (n *node) register(ctx context.Context) error {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.name, Labels: map[string]string{"kubernetes.io/hostname": n.name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}}}
	n.client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
	node, err := n.client.CoreV1().Nodes().Get(ctx, n.name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	q := resource.MustParse
	node.Status.Capacity = corev1.ResourceList{"cpu": q(n.cpu), "memory": q("256Gi"), "pods": q("500"), "ephemeral-storage": q("100Gi")}
	node.Status.Allocatable = node.Status.Capacity
	node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "127.0.0.1"}, {Type: corev1.NodeHostName, Address: n.name}}
	node.Status.DaemonEndpoints.KubeletEndpoint.Port = n.port
	node.Status.NodeInfo = corev1.NodeSystemInfo{OperatingSystem: "linux", Architecture: "amd64", KubeletVersion: "v1.37.1", ContainerRuntimeVersion: "simulated://1"}
	now := metav1.Now()
	node.Status.Conditions = nil
	for t, s := range map[corev1.NodeConditionType]corev1.ConditionStatus{"Ready": "True", "MemoryPressure": "False", "DiskPressure": "False", "PIDPressure": "False"} {
		node.Status.Conditions = append(node.Status.Conditions, corev1.NodeCondition{Type: t, Status: s, LastHeartbeatTime: now, LastTransitionTime: now, Reason: "Simulated"})
	}
	_, err = n.client.CoreV1().Nodes().UpdateStatus(ctx, node, metav1.UpdateOptions{})
	return err
}

func (n *node) heartbeat(ctx context.Context) {
	leases := n.client.CoordinationV1().Leases("kube-node-lease")
	for i := 0; ; i++ {
		now := metav1.NewMicroTime(time.Now())
		l, err := leases.Get(ctx, n.name, metav1.GetOptions{})
		if err == nil {
			l.Spec.RenewTime = &now
			_, err = leases.Update(ctx, l, metav1.UpdateOptions{})
		} else {
			_, err = leases.Create(ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: n.name}, Spec: coordinationv1.LeaseSpec{
				HolderIdentity: &n.name, LeaseDurationSeconds: ptr.To[int32](40), RenewTime: &now}}, metav1.CreateOptions{})
		}
		if err != nil {
			log.Print(err)
		}
		if i%12 == 11 {
			if err := n.register(ctx); err != nil {
				log.Print(err)
			}
		}
		time.Sleep(5 * time.Second)
	}
}
