package main

import (
	"context"
	"fmt"
	"log"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

type pod struct {
	ns, name   string
	uid        types.UID
	ip         string
	phase      string // "", starting, running, ending
	containers []*container
	command    []string
	external   map[string]int
}

type container struct {
	name             string
	port             int
	cpuLimit         float64 // millicores, 0: none
	memLimit         float64
	started          time.Time
	cpuSeconds       float64
	memory           float64
	cpuUses, memUses []use
}

func (n *node) gone(uid types.UID) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if p := n.pods[uid]; p != nil {
		delete(n.byIP, p.ip)
		delete(n.pods, uid)
	}
}

func (n *node) seen(ctx context.Context, o *corev1.Pod) {
	if o.Spec.NodeName != n.name {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	p := n.pods[o.UID]
	if p == nil {
		n.next++
		p = &pod{ns: o.Namespace, name: o.Name, uid: o.UID, ip: fmt.Sprintf("10.88.%d.%d", n.next/250%250, n.next%250+2), external: map[string]int{"queue_messages_ready": 100, "http_requests_total": 500}}
		podCPU, podMem := 0.0, 0.0
		if r := o.Spec.Resources; r != nil {
			podCPU, podMem = float64(r.Limits.Cpu().MilliValue()), float64(r.Limits.Memory().Value())
		}
		for i, c := range o.Spec.Containers {
			added := &container{name: c.Name, port: 8080 + i, cpuLimit: float64(c.Resources.Limits.Cpu().MilliValue()), memLimit: float64(c.Resources.Limits.Memory().Value())}
			if added.cpuLimit == 0 {
				added.cpuLimit = podCPU
			}
			if added.memLimit == 0 {
				added.memLimit = podMem
			}
			p.containers = append(p.containers, added)
			if i == 0 {
				p.command = append(append([]string{}, c.Command...), c.Args...)
			}
		}
		n.pods[o.UID], n.byIP[p.ip] = p, p
	}
	switch {
	case o.DeletionTimestamp != nil && p.phase != "ending":
		p.phase = "ending"
		go n.end(ctx, o)
	case o.DeletionTimestamp == nil && p.phase == "":
		p.phase = "starting"
		go n.begin(ctx, o, p)
	}
}

// end lets a pod go a second after its deletion.
func (n *node) end(ctx context.Context, o *corev1.Pod) {
	time.Sleep(time.Second)
	zero := int64(0)
	if err := n.client.CoreV1().Pods(o.Namespace).Delete(ctx, o.Name, metav1.DeleteOptions{GracePeriodSeconds: &zero, Preconditions: &metav1.Preconditions{UID: &o.UID}}); err != nil {
		log.Printf("delete %s/%s: %v", o.Namespace, o.Name, err)
	}
}

// begin makes a pod Running and Ready after two seconds.
func (n *node) begin(ctx context.Context, o *corev1.Pod, p *pod) {
	begun := metav1.Now()
	time.Sleep(2 * time.Second)
	for try := 0; try < 5; try++ {
		live, err := n.client.CoreV1().Pods(o.Namespace).Get(ctx, o.Name, metav1.GetOptions{})
		if err != nil || live.UID != o.UID || live.DeletionTimestamp != nil {
			return
		}
		now := metav1.Now()
		s := &live.Status
		s.Phase, s.StartTime, s.HostIP, s.HostIPs, s.PodIP, s.PodIPs = corev1.PodRunning, &begun, "127.0.0.1", []corev1.HostIP{{IP: "127.0.0.1"}}, p.ip, []corev1.PodIP{{IP: p.ip}}
		for _, t := range []corev1.PodConditionType{"PodReadyToStartContainers", "Initialized", "ContainersReady", "Ready"} {
			s.Conditions = append(s.Conditions, corev1.PodCondition{Type: t, Status: corev1.ConditionTrue, LastTransitionTime: now})
		}
		s.ContainerStatuses = nil
		for _, c := range live.Spec.Containers {
			s.ContainerStatuses = append(s.ContainerStatuses, corev1.ContainerStatus{Name: c.Name, Image: c.Image, ImageID: "simulated", ContainerID: "simulated://" + string(o.UID) + c.Name,
				Ready: true, Started: ptr.To(true), State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}}, Resources: c.Resources.DeepCopy(), AllocatedResources: c.Resources.Requests.DeepCopy()})
		}
		if _, err = n.client.CoreV1().Pods(o.Namespace).UpdateStatus(ctx, live, metav1.UpdateOptions{}); err == nil {
			n.mu.Lock()
			if p.phase == "starting" {
				p.phase = "running"
			}
			for _, c := range p.containers {
				c.started = time.Now()
			}
			n.mu.Unlock()
			return
		}
		log.Printf("status of %s/%s: %v", o.Namespace, o.Name, err)
		time.Sleep(500 * time.Millisecond)
	}
}
