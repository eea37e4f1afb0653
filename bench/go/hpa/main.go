// Upstream's replica calculator on the inputs of bench/horizontal.py: N ready pods with one container each, a CPU
// utilisation target, and a metrics client that hands over a list that is already decoded. One JSON line per N.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/kubernetes/pkg/controller/podautoscaler"
	"k8s.io/kubernetes/pkg/controller/podautoscaler/metrics"
	metricsapi "k8s.io/metrics/pkg/apis/metrics/v1beta1"
	metricsclient "k8s.io/metrics/pkg/client/clientset/versioned/typed/metrics/v1beta1"
)

const rounds = 7

// recorded answers every list of pod metrics with the same one.
type recorded struct {
	metricsclient.PodMetricsInterface
	answer *metricsapi.PodMetricsList
}

func (r recorded) PodMetricses(string) metricsclient.PodMetricsInterface { return r }

func (r recorded) List(context.Context, metav1.ListOptions) (*metricsapi.PodMetricsList, error) {
	return r.answer, nil
}

func workload(pods int) (corelisters.PodLister, recorded) {
	store := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	answer := &metricsapi.PodMetricsList{}
	since := metav1.NewTime(time.Now().Add(-time.Hour))
	for i := range pods {
		meta := metav1.ObjectMeta{Name: fmt.Sprintf("web-%05d", i), Namespace: "shop", Labels: map[string]string{"app": "web"}}
		request := v1.ResourceRequirements{Requests: v1.ResourceList{"cpu": resource.MustParse("100m")}}
		if err := store.Add(&v1.Pod{
			ObjectMeta: meta,
			Spec:       v1.PodSpec{Containers: []v1.Container{{Name: "main", Resources: request}}},
			Status: v1.PodStatus{Phase: v1.PodRunning, StartTime: &since, Conditions: []v1.PodCondition{
				{Type: v1.PodReady, Status: v1.ConditionTrue, LastTransitionTime: since}}},
		}); err != nil {
			panic(err)
		}
		used := resource.MustParse(fmt.Sprintf("%dm", 100+i%7))
		answer.Items = append(answer.Items, metricsapi.PodMetrics{
			ObjectMeta: meta, Timestamp: metav1.Now(), Window: metav1.Duration{Duration: 15 * time.Second},
			Containers: []metricsapi.ContainerMetrics{{Name: "main", Usage: v1.ResourceList{"cpu": used}}},
		})
	}
	return corelisters.NewPodLister(store), recorded{answer: answer}
}

func best(pods int) time.Duration {
	lister, client := workload(pods)
	calculator := podautoscaler.NewReplicaCalculator(metrics.NewRESTMetricsClient(client, nil, nil), lister, 5*time.Minute, 30*time.Second)
	selector := labels.SelectorFromSet(labels.Set{"app": "web"})
	calls := 20000/pods + 200
	shortest := time.Duration(1<<63 - 1)
	for range rounds {
		begun := time.Now()
		for range calls {
			if _, _, _, _, err := calculator.GetResourceReplicas(context.Background(), int32(pods), 100, "cpu",
				podautoscaler.Tolerances{}, "shop", selector, ""); err != nil {
				panic(err)
			}
		}
		shortest = min(shortest, time.Since(begun)/time.Duration(calls))
	}
	return shortest
}

func main() {
	out := json.NewEncoder(os.Stdout)
	for _, argument := range os.Args[1:] {
		pods, err := strconv.Atoi(argument)
		if err != nil || pods < 1 {
			fmt.Fprintf(os.Stderr, "%q is not a number of pods\n", argument)
			os.Exit(2)
		}
		if err := out.Encode(map[string]float64{"pods": float64(pods), "us": float64(best(pods).Nanoseconds()) / 1000}); err != nil {
			panic(err)
		}
	}
}
