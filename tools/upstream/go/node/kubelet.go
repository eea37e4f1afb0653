package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"k8s.io/cri-streaming/pkg/streaming/portforward"
)

func (n *node) kubelet() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/metrics/resource", func(w http.ResponseWriter, r *http.Request) {
		n.mu.Lock()
		defer n.mu.Unlock()
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		ms := time.Now().UnixMilli()
		var cpu, memory, start strings.Builder
		totalCPU, totalMemory := 1.0, 1e8
		for _, p := range n.pods {
			if p.phase != "running" {
				continue
			}
			for _, c := range p.containers {
				l := fmt.Sprintf("{container=%q,namespace=%q,pod=%q}", c.name, p.ns, p.name)
				fmt.Fprintf(&cpu, "container_cpu_usage_seconds_total%s %.6f %d\n", l, c.cpuSeconds, ms)
				fmt.Fprintf(&memory, "container_memory_working_set_bytes%s %.0f %d\n", l, c.memory, ms)
				fmt.Fprintf(&start, "container_start_time_seconds%s %.3f\n", l, float64(c.started.UnixMilli())/1000)
				totalCPU += c.cpuSeconds
				totalMemory += c.memory
			}
		}
		fmt.Fprintf(w, "# TYPE container_cpu_usage_seconds_total counter\n%s# TYPE container_memory_working_set_bytes gauge\n%s# TYPE container_start_time_seconds gauge\n%s", &cpu, &memory, &start)
		fmt.Fprintf(w, "# TYPE node_cpu_usage_seconds_total counter\nnode_cpu_usage_seconds_total %.3f %d\n# TYPE node_memory_working_set_bytes gauge\nnode_memory_working_set_bytes %.0f %d\n", totalCPU+float64(time.Now().Unix()), ms, totalMemory, ms)
	})
	mux.HandleFunc("/portForward/", func(w http.ResponseWriter, r *http.Request) {
		parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
		if len(parts) < 3 {
			http.NotFound(w, r)
			return
		}
		options, err := portforward.NewV4Options(r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		portforward.ServePortForward(w, r, forwarder{n}, parts[1]+"/"+parts[2], "", options, 4*time.Hour, 30*time.Second, portforward.SupportedProtocols)
	})
	mux.HandleFunc("/containerLogs/", func(w http.ResponseWriter, r *http.Request) {})
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, r *http.Request) { fmt.Fprintln(w, "ok") })
	return mux
}

type forwarder struct{ node *node }

func (f forwarder) PortForward(_ context.Context, name, _ string, port int32, stream io.ReadWriteCloser) error {
	f.node.mu.Lock()
	ip := ""
	for _, p := range f.node.pods {
		if p.ns+"/"+p.name == name {
			ip = p.ip
		}
	}
	f.node.mu.Unlock()
	conn, err := f.node.dial(net.JoinHostPort(ip, strconv.Itoa(int(port))))
	if err != nil {
		return err
	}
	join(stream, conn)
	return nil
}
