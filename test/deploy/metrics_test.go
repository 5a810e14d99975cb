package deploy

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/VictoriaMetrics/metricsql"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"go.yaml.in/yaml/v3"

	"hubcloud/streams/streamstest"
	"hubcloud/test/harness"
)

// rules is the part of hubcloud.rules.yaml that the tests need.
type rules struct {
	Groups []struct {
		Rules []struct {
			Alert       string            `yaml:"alert"`
			Expr        string            `yaml:"expr"`
			Annotations map[string]string `yaml:"annotations"`
		} `yaml:"rules"`
	} `yaml:"groups"`
}

func readRules(t *testing.T) rules {
	t.Helper()
	var r rules
	harness.Must(t, yaml.Unmarshal(read(t, "prometheus/hubcloud.rules.yaml"), &r))
	return r
}

// query is a PromQL expression and its location.
type query struct{ where, expr string }

// TestMetrics compares every query of the alerts and the dashboard with a scrape of a running
// service: metrics, labels and label values must exist, except for values that need time to appear.
func TestMetrics(t *testing.T) {
	t.Parallel()
	service := harness.Start(t)
	tenant := harness.NewTenant(t, service, "Metrics")
	hub := harness.NewRawHub(t, service)
	hub.Enroll()
	hub.GoOnline()
	tenant.Add(hub.Serial)
	tenant.Must(http.MethodGet, "/hubs", nil, http.StatusOK)
	var found series
	streamstest.Eventually(t, "a hub's state is projected", func() bool {
		found = scrape(t, service)
		return found["hubcloud_projections_cached_hubs"] != nil
	})

	var queries []query
	for _, group := range readRules(t).Groups {
		for _, rule := range group.Rules {
			queries = append(queries, query{"alert " + rule.Alert, rule.Expr})
		}
	}
	alerts := len(queries)
	queries = append(queries, dashboardQueries(t)...)
	if alerts < 20 || len(queries) < alerts+50 {
		t.Fatalf(
			"got only %d alerts and %d dashboard queries", alerts, len(queries)-alerts,
		)
	}
	for _, q := range queries {
		expr, err := metricsql.Parse(q.expr)
		if err != nil {
			t.Errorf("%s: %v", q.where, err)
			continue
		}
		metricsql.VisitAll(expr, func(part metricsql.Expr) {
			for _, wrong := range found.wrong(part) {
				t.Errorf("%s: %s: %s", q.where, part.AppendString(nil), wrong)
			}
		})
	}
}

// dashboardQueries returns the queries of the dashboard, with values for Grafana's variables.
func dashboardQueries(t *testing.T) []query {
	t.Helper()
	var board struct {
		Panels []struct {
			Title   string `json:"title"`
			Targets []struct {
				Expr string `json:"expr"`
			} `json:"targets"`
		} `json:"panels"`
	}
	harness.Must(t, json.Unmarshal(read(t, "grafana/hubcloud.json"), &board))
	variables := strings.NewReplacer("$__rate_interval", "1m", "$instance", ".+")
	var queries []query
	for _, panel := range board.Panels {
		for _, target := range panel.Targets {
			queries = append(queries, query{"panel " + panel.Title, variables.Replace(target.Expr)})
		}
	}
	return queries
}

// series has the label sets of each metric of a scrape.
type series map[string][]map[string]string

func scrape(t *testing.T, service *harness.Service) series {
	t.Helper()
	answer, err := http.Get("http://" + service.Admin + "/metrics")
	harness.Must(t, err)
	defer answer.Body.Close()
	reader := expfmt.NewTextParser(model.UTF8Validation)
	families, err := reader.TextToMetricFamilies(answer.Body)
	harness.Must(t, err)
	all := series{}
	for name, family := range families {
		for _, metric := range family.GetMetric() {
			all.add(name, family.GetType(), metric)
		}
	}
	// Prometheus adds this metric.
	all["up"] = []map[string]string{{}}
	return all
}

func (s series) add(name string, kind dto.MetricType, metric *dto.Metric) {
	set := map[string]string{}
	for _, pair := range metric.GetLabel() {
		set[pair.GetName()] = pair.GetValue()
	}
	if kind != dto.MetricType_HISTOGRAM {
		s[name] = append(s[name], set)
		return
	}
	bucket := map[string]string{"le": "any"}
	for label, value := range set {
		bucket[label] = value
	}
	s[name+"_bucket"] = append(s[name+"_bucket"], bucket)
	s[name+"_sum"] = append(s[name+"_sum"], set)
	s[name+"_count"] = append(s[name+"_count"], set)
}

// scraped are the labels that Prometheus adds to every scraped series.
var scraped = []string{"job", "instance"}

// overTime are functions that take a range of time. metricsql can do without the range, PromQL not.
var overTime = []string{"rate", "increase", "delta", "changes", "resets", "max_over_time", "min_over_time"}

// wrong returns the unknown names in a part of a query, and what is no PromQL.
func (s series) wrong(part metricsql.Expr) []string {
	switch part := part.(type) {
	case *metricsql.MetricExpr:
		return s.misses(part)
	case *metricsql.AggrFuncExpr:
		return s.lacks(part)
	case *metricsql.FuncExpr:
		if slices.Contains(overTime, part.Name) {
			if over, ok := part.Args[0].(*metricsql.RollupExpr); !ok || over.Window == nil {
				return []string{"no range of time"}
			}
		}
	}
	return nil
}

// lacks returns the grouping labels that the grouped series do not have.
func (s series) lacks(group *metricsql.AggrFuncExpr) []string {
	var wrong []string
	metricsql.VisitAll(group, func(part metricsql.Expr) {
		selector, ok := part.(*metricsql.MetricExpr)
		if !ok {
			return
		}
		name, _ := selected(selector)
		for _, label := range group.Modifier.Args {
			has := slices.Contains(scraped, label)
			for _, set := range s[name] {
				has = has || set[label] != ""
			}
			if !has {
				wrong = append(wrong, name+" has no label "+label)
			}
		}
	})
	return wrong
}

// selected returns the name of the metric that a selector selects, and its filters of labels.
func selected(selector *metricsql.MetricExpr) (string, []metricsql.LabelFilter) {
	if len(selector.LabelFilterss) != 1 || selector.LabelFilterss[0][0].Label != "__name__" {
		return "", nil
	}
	return selector.LabelFilterss[0][0].Value, selector.LabelFilterss[0][1:]
}

// misses returns the names in a selector that the scrape does not have.
func (s series) misses(selector *metricsql.MetricExpr) []string {
	name, filters := selected(selector)
	sets, ok := s[name]
	if !ok {
		return []string{"there is no such metric"}
	}
	var wrong []string
	for _, filter := range filters {
		if slices.Contains(scraped, filter.Label) {
			continue
		}
		if !slices.ContainsFunc(sets, func(set map[string]string) bool {
			value, has := set[filter.Label]
			return has && matches(filter, value)
		}) {
			wrong = append(wrong, "no series has "+string(filter.AppendString(nil)))
		}
	}
	return wrong
}

func matches(filter metricsql.LabelFilter, value string) bool {
	if !filter.IsRegexp {
		return (filter.Value == value) != filter.IsNegative
	}
	pattern, err := metricsql.CompileRegexpAnchored(filter.Value)
	return err == nil && pattern.MatchString(value) != filter.IsNegative
}
