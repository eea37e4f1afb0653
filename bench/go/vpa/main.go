// The upstream VPA recommender's core, without an API: what one usage sample, one recommendation and one aggregate
// cost. Prints one JSON object per number of aggregates named on the command line; bench/vertical.py runs it.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"time"

	"k8s.io/autoscaler/vertical-pod-autoscaler/pkg/recommender/logic"
	"k8s.io/autoscaler/vertical-pod-autoscaler/pkg/recommender/model"
)

const scrapes = 10

// More rounds for small runs, as bench/vertical.py has: the shortest is the one that others disturbed least.
func rounds(count int) int { return max(scrapes, 60_000/count) }

type result struct {
	Aggregates       int     `json:"aggregates"`
	SampleNs         float64 `json:"sampleNs"`
	RecommendationNs float64 `json:"recommendationNs"`
	AggregateBytes   float64 `json:"aggregateBytes"`
}

func main() {
	for _, argument := range os.Args[1:] {
		count, err := strconv.Atoi(argument)
		if err != nil {
			panic(err)
		}
		line, _ := json.Marshal(measure(count))
		fmt.Println(string(line))
	}
}

func measure(count int) result {
	before := heap()
	aggregates := make([]*model.AggregateContainerState, count)
	containers := make([]*model.ContainerState, count)
	for i := range aggregates {
		aggregates[i] = model.NewAggregateContainerState()
		containers[i] = model.NewContainerState(nil, aggregates[i])
	}
	at := time.Date(2026, 1, 15, 12, 0, 0, 0, time.UTC)
	best := time.Duration(1 << 62)
	for k := range rounds(count) {
		begun := time.Now()
		scrape(containers, at.Add(time.Duration(k)*time.Minute), k)
		best = min(best, time.Since(begun))
	}
	after := heap()
	took := recommend(aggregates)
	runtime.KeepAlive(containers)
	return result{count, per(best, 2*count), per(took, count), float64(after-before) / float64(count)}
}

// The usage of bench/vertical.py: a spread of about a decade, each container moving a little.
func scrape(containers []*model.ContainerState, at time.Time, k int) {
	for i, container := range containers {
		cpu := 0.05 + 0.001*float64((i*7+k*13)%1000)
		memory := float64(100<<20 + ((i*11+k*3)%2000)<<20)
		container.AddSample(&model.ContainerUsageSample{
			MeasureStart: at, Usage: model.CPUAmountFromCores(cpu), Resource: model.ResourceCPU})
		container.AddSample(&model.ContainerUsageSample{
			MeasureStart: at, Usage: model.MemoryAmountFromBytes(memory), Resource: model.ResourceMemory})
	}
}

func recommend(aggregates []*model.AggregateContainerState) time.Duration {
	recommender := logic.CreatePodResourceRecommender(logic.RecommendationConfig{
		SafetyMarginFraction: 0.15, PodMinCPUMillicores: 25, PodMinMemoryMb: 250,
		TargetCPUPercentile: 0.9, LowerBoundCPUPercentile: 0.5, UpperBoundCPUPercentile: 0.95,
		TargetMemoryPercentile: 0.9, LowerBoundMemoryPercentile: 0.5, UpperBoundMemoryPercentile: 0.95,
		ConfidenceIntervalCPU: 24 * time.Hour, ConfidenceIntervalMemory: 24 * time.Hour,
	})
	best := time.Duration(1 << 62)
	for range rounds(len(aggregates)) / 2 {
		begun := time.Now()
		for _, aggregate := range aggregates {
			if len(recommender.GetRecommendedPodResources(model.ContainerNameToAggregateStateMap{"app": aggregate})) != 1 {
				panic("no recommendation")
			}
		}
		best = min(best, time.Since(begun))
	}
	return best
}

func per(took time.Duration, count int) float64 { return float64(took.Nanoseconds()) / float64(count) }

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}
