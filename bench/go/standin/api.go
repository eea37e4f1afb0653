package main

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
)

type counters struct{ requests, bytes atomic.Int64 }

// metricsAPI answers what a client of metrics.k8s.io, v1 or v1beta1, asks: discovery and lists of pods.
type metricsAPI struct {
	usage  *Usage
	served *counters
}

const (
	groupName = "metrics.k8s.io"
	resources = `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"metrics.k8s.io/%s","resources":[` +
		`{"name":"pods","singularName":"","namespaced":true,"kind":"PodMetrics","verbs":["get","list"]},` +
		`{"name":"nodes","singularName":"","namespaced":false,"kind":"NodeMetrics","verbs":["get","list"]}]}`
	nodes   = `{"kind":"NodeMetricsList","apiVersion":"metrics.k8s.io/%s","metadata":{},"items":[]}`
	missing = `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","reason":"NotFound","code":404,"message":"not here"}`
)

// versions are those that are served, preferred first. They hold the same fields.
var versions = []string{"v1", "v1beta1"}

func group() []byte {
	var listed []string
	for _, version := range versions {
		listed = append(listed, fmt.Sprintf(`{"groupVersion":"%s/%s","version":%q}`, groupName, version, version))
	}
	return fmt.Appendf(nil, `{"kind":"APIGroup","apiVersion":"v1","name":%q,"versions":[%s],"preferredVersion":%s}`,
		groupName, strings.Join(listed, ","), listed[0])
}

func (m *metricsAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := strings.Trim(r.URL.Path, "/")
	if path == "apis/"+groupName {
		m.reply(w, "application/json", group())
		return
	}
	within, _ := strings.CutPrefix(path, "apis/"+groupName+"/")
	version, rest, _ := strings.Cut(within, "/")
	switch {
	case within == path || !slices.Contains(versions, version):
		m.refuse(w)
	case rest == "":
		m.reply(w, "application/json", fmt.Appendf(nil, resources, version))
	case rest == "nodes":
		m.reply(w, "application/json", fmt.Appendf(nil, nodes, version))
	case rest == "pods":
		m.list(w, r, version, "")
	case strings.HasPrefix(rest, "namespaces/") && strings.HasSuffix(rest, "/pods"):
		m.list(w, r, version, strings.Split(rest, "/")[1])
	default:
		m.refuse(w)
	}
}

func (m *metricsAPI) refuse(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusNotFound)
	fmt.Fprint(w, missing)
}

func (m *metricsAPI) list(w http.ResponseWriter, r *http.Request, version, namespace string) {
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
	m.reply(w, encodings[which].contentType, encodings[which].list(groupName+"/"+version, parts, size))
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
