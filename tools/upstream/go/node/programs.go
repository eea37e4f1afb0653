package main

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// dial connects to a port of a simulated pod.
func (n *node) dial(address string) (net.Conn, error) {
	host, portText, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	port, _ := strconv.Atoi(portText)
	n.mu.Lock()
	p := n.byIP[host]
	up := p != nil && p.phase == "running"
	n.mu.Unlock()
	if !up {
		return nil, fmt.Errorf("no running pod has %s", host)
	}
	near, far := net.Pipe()
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { n.serve(p, port, w, r) })
	var server net.Conn = far
	if len(p.command) > 1 && p.command[1] == "external-metrics" {
		server = tls.Server(far, &tls.Config{Certificates: []tls.Certificate{n.cert}})
	}
	go (&http.Server{Handler: h}).Serve(&singleListener{conn: server})
	return near, nil
}

// singleListener is a listener of a single connection.
type singleListener struct {
	conn net.Conn
	done chan struct{}
	once sync.Once
}

func (s *singleListener) Accept() (net.Conn, error) {
	var c net.Conn
	s.once.Do(func() { s.done = make(chan struct{}); c = &watchedConn{s.conn, s.done, sync.Once{}} })
	if c != nil {
		return c, nil
	}
	<-s.done
	return nil, io.EOF
}
func (s *singleListener) Close() error   { return nil }
func (s *singleListener) Addr() net.Addr { return s.conn.LocalAddr() }

// watchedConn tells its listener when it is closed.
type watchedConn struct {
	net.Conn
	done chan struct{}
	once sync.Once
}

func (t *watchedConn) Close() error { t.once.Do(func() { close(t.done) }); return t.Conn.Close() }

func (n *node) serve(p *pod, port int, w http.ResponseWriter, r *http.Request) {
	r.ParseForm()
	number := func(name string) float64 { v, _ := strconv.ParseFloat(r.FormValue(name), 64); return v }
	kind := "consumer"
	if len(p.command) > 1 && strings.HasSuffix(p.command[0], "agnhost") {
		kind = p.command[1]
	}
	switch kind {
	case "consumer":
		n.consume(p.ip, port, r.URL.Path, number("millicores"), number("megabytes"), number("durationSec"))
		fmt.Fprintln(w, r.URL.Path[1:])
	case "resource-consumer-controller":
		service, ns := "", ""
		for _, a := range p.command {
			if v, ok := strings.CutPrefix(a, "--consumer-service-name="); ok {
				service = v
			}
			if v, ok := strings.CutPrefix(a, "--consumer-service-namespace="); ok {
				ns = v
			}
		}
		total, size, memory := number("millicores"), number("requestSizeMillicores"), false
		if r.URL.Path == "/ConsumeMem" {
			total, size, memory = number("megabytes"), number("requestSizeMegabytes"), true
		}
		for total > 0 && size > 0 {
			part := min(total, size)
			total -= part
			to, err := n.pick(ns, service, 80)
			if err != nil {
				fmt.Fprintf(w, "Failed to connect to consumer: %v\n", err)
				continue
			}
			ip, portText, _ := net.SplitHostPort(to)
			at, _ := strconv.Atoi(portText)
			if memory {
				n.consume(ip, at, r.URL.Path, 0, part, number("durationSec"))
			} else {
				n.consume(ip, at, r.URL.Path, part, 0, number("durationSec"))
			}
			fmt.Fprintf(w, "Consumed %v\n", part)
		}
	case "external-metrics":
		n.externalMetrics(p, w, r)
	}
}

// externalMetrics answers as test/images/agnhost/external-metrics does.
func (n *node) externalMetrics(p *pod, w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	answer := func(o any) { json.NewEncoder(w).Encode(o) }
	type m = map[string]any
	n.mu.Lock()
	defer n.mu.Unlock()
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch {
	case parts[0] == "set" && len(parts) == 2:
		v, err := strconv.Atoi(r.FormValue("value"))
		if _, ok := p.external[parts[1]]; !ok || err != nil {
			http.Error(w, "metric "+parts[1]+" not found", http.StatusNotFound)
			return
		}
		p.external[parts[1]] = v
		log.Printf("external metric %s of %s/%s set to %d", parts[1], p.ns, p.name, v)
		answer(m{"status": "success", "metric": parts[1], "value": v})
	case parts[0] == "healthz" || parts[0] == "readyz":
		io.WriteString(w, "ok")
	case len(parts) == 2 && parts[0] == "apis":
		v := m{"groupVersion": "external.metrics.k8s.io/v1beta1", "version": "v1beta1"}
		answer(m{"kind": "APIGroup", "apiVersion": "v1", "name": "external.metrics.k8s.io", "versions": []m{v}, "preferredVersion": v})
	case len(parts) == 3 && parts[0] == "apis":
		answer(m{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "external.metrics.k8s.io/v1beta1",
			"resources": []m{{"name": "*", "namespaced": true, "kind": "ExternalMetricValueList", "verbs": []string{"get"}}}})
	case len(parts) >= 6 && parts[3] == "namespaces":
		v, ok := p.external[parts[5]]
		if !ok {
			http.Error(w, "metric not found", http.StatusNotFound)
			return
		}
		answer(m{"kind": "ExternalMetricValueList", "apiVersion": "external.metrics.k8s.io/v1beta1", "metadata": m{},
			"items": []m{{"metricName": parts[5], "metricLabels": nil, "timestamp": time.Now().UTC().Format(time.RFC3339), "value": strconv.Itoa(v)}}})
	default:
		http.NotFound(w, r)
	}
}
