package main

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
)

type counters struct{ requests, bytes atomic.Int64 }

// metricsAPI answers what a client of metrics.k8s.io/v1beta1 asks: discovery and lists of pods.
type metricsAPI struct {
	usage  *Usage
	served *counters
}

const (
	group     = `{"kind":"APIGroup","apiVersion":"v1","name":"metrics.k8s.io","versions":[{"groupVersion":"` + apiVersion + `","version":"v1beta1"}],"preferredVersion":{"groupVersion":"` + apiVersion + `","version":"v1beta1"}}`
	resources = `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"` + apiVersion + `","resources":[` +
		`{"name":"pods","singularName":"","namespaced":true,"kind":"PodMetrics","verbs":["get","list"]},` +
		`{"name":"nodes","singularName":"","namespaced":false,"kind":"NodeMetrics","verbs":["get","list"]}]}`
	nodes   = `{"kind":"NodeMetricsList","apiVersion":"` + apiVersion + `","metadata":{},"items":[]}`
	missing = `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","reason":"NotFound","code":404,"message":"not here"}`
)

func (m *metricsAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := strings.Trim(r.URL.Path, "/")
	switch rest, found := strings.CutPrefix(path, "apis/"+apiVersion+"/"); {
	case path == "apis/metrics.k8s.io":
		m.reply(w, "application/json", []byte(group))
	case path == "apis/"+apiVersion:
		m.reply(w, "application/json", []byte(resources))
	case rest == "nodes":
		m.reply(w, "application/json", []byte(nodes))
	case found && rest == "pods":
		m.list(w, r, "")
	case found && strings.HasPrefix(rest, "namespaces/") && strings.HasSuffix(rest, "/pods"):
		m.list(w, r, strings.Split(rest, "/")[1])
	default:
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, missing)
	}
}

func (m *metricsAPI) list(w http.ResponseWriter, r *http.Request, namespace string) {
	which := 0
	if strings.Contains(r.Header.Get("Accept"), encodings[1].contentType) {
		which = 1
	}
	m.usage.RLock()
	defer m.usage.RUnlock()
	at, size := m.usage.now(), 0
	var parts [][]byte
	for _, one := range m.usage.find(namespace, r.URL.Query().Get("labelSelector")) {
		part := m.part(one, which, at)
		parts, size = append(parts, part), size+len(part)
	}
	m.reply(w, encodings[which].contentType, encodings[which].list(parts, size))
}

func (m *metricsAPI) part(one *Workload, which int, at moment) []byte {
	kept := &one.fragments[which]
	kept.mutex.Lock()
	defer kept.mutex.Unlock()
	if kept.bytes == nil || kept.at != at {
		cpu, memory := m.usage.of(one, at)
		kept.at, kept.bytes = at, encodings[which].fragment(one, cpu, memory, m.usage.stamp(at))
	}
	return kept.bytes
}

func (m *metricsAPI) reply(w http.ResponseWriter, contentType string, body []byte) {
	w.Header().Set("Content-Type", contentType)
	written, _ := w.Write(body)
	m.served.requests.Add(1)
	m.served.bytes.Add(int64(written))
}
