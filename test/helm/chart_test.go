package helm

import (
	"bytes"
	"io"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	apps "k8s.io/api/apps/v1"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"
	sigsyaml "sigs.k8s.io/yaml"

	"hubcloud/streams/streamstest"
)

// common are values that every installation sets.
const common = `{publicUrl: "https://hubs.example.org", trustedProxies: [192.0.2.0/28]}`

// cluster and full are installations: the least of a cluster, and all that the chart has.
const (
	cluster = `{mode: cluster, publicMqtt: "hubs.example.org:8883", postgres: {secret: database}}`
	full    = `{ingress: {enabled: true, className: nginx, tlsSecret: web, annotations: {a: b}},
		serviceMonitor: {enabled: true, labels: {release: prometheus}},
		prometheusRule: {enabled: true, labels: {release: prometheus}},
		networkPolicy: {api: [{namespaceSelector: {}}], taps: [{podSelector: {}}]},
		settings: {HUBCLOUD_MAIL_FROM: hubs@example.org, HUBCLOUD_RATE: 20}, settingsSecret: mail, oidcSecret: oidc,
		images: {pullSecrets: [registry]}, mqtt: {annotations: {a: b}, type: NodePort},
		service: {storageClass: fast, nodeSelector: {disk: ssd}, tolerations: [{operator: Exists}]}}`
	backups  = `{backup: {schedule: "17 3 * * *"}, broker: {storageClass: fast}}`
	external = `{broker: {urls: ["tls://nats.example.org:4222"]}}`
)

// TestChart renders the chart with the values of installations. What comes out are objects of the
// API, without a field that it does not know, and they fit together.
func TestChart(t *testing.T) {
	t.Parallel()
	single := []string{
		"ConfigMap/hub", "NetworkPolicy/hub", "Service/hub", "Service/hub-hubs",
		"Service/hub-metrics", "StatefulSet/hub",
	}
	clustered := []string{
		"ConfigMap/hub", "Deployment/hub", "NetworkPolicy/hub", "NetworkPolicy/hub-nats",
		"PodDisruptionBudget/hub", "PodDisruptionBudget/hub-nats", "Service/hub",
		"Service/hub-hubs", "Service/hub-metrics", "Service/hub-nats", "StatefulSet/hub-nats",
	}
	more := []string{"Ingress/hub", "PrometheusRule/hub", "ServiceMonitor/hub"}
	for name, c := range map[string]struct {
		values []string
		want   []string
	}{
		"single": {nil, single},
		"single with everything": {
			[]string{full, `{postgres: {secret: database}}`}, slices.Concat(single, more),
		},
		"single with a broker of its own": {
			[]string{external}, slices.DeleteFunc(slices.Clone(single), func(object string) bool {
				return object == "Service/hub-hubs"
			}),
		},
		"cluster": {[]string{cluster}, clustered},
		"cluster with everything": {
			[]string{cluster, full, backups},
			slices.Concat(clustered, more, []string{"CronJob/hub-backup"}),
		},
		"cluster with a broker of its own": {
			[]string{cluster, external, `{podDisruptionBudget: {enabled: false}}`},
			[]string{
				"ConfigMap/hub", "Deployment/hub", "NetworkPolicy/hub", "Service/hub",
				"Service/hub-metrics",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			objects := render(t, c.values...)
			got, want := slices.Sorted(maps.Keys(objects)), slices.Sorted(slices.Values(c.want))
			if !slices.Equal(got, want) {
				t.Errorf("got the objects %q, want %q", got, want)
			}
			fit(t, objects)
		})
	}
}

// TestRejectedValues checks that the schema rejects what would not work.
func TestRejectedValues(t *testing.T) {
	t.Parallel()
	for name, values := range map[string][]string{
		"no public URL":             {`{publicUrl: ""}`},
		"a public URL with a path":  {`{publicUrl: "https://hubs.example.org/v1"}`},
		"a cluster without more":    {`{mode: cluster}`},
		"a cluster and no database": {cluster, `{postgres: {secret: ""}}`},
		"another mode":              {`{mode: double}`},
		"a misspelt value":          {`{ingres: {enabled: true}}`},
		"a misspelt value inside":   {`{ingress: {enable: true}}`},
		"a list that is a string":   {`{trustedProxies: "192.0.2.0/28"}`},
		"a setting of the chart":    {`{settings: {HUBCLOUD_HTTP: ":80"}}`},
		"no time of backups":        {cluster, `{backup: {schedule: daily}}`},
		"backups of a single node":  {`{backup: {schedule: "17 3 * * *"}}`},
	} {
		if _, err := manifests(t, values...); err == nil ||
			!strings.Contains(err.Error(), "values don't meet the specifications of the schema") {
			t.Errorf("%s: got %v, want an error of the schema", name, err)
		}
	}
}

// TestPackedChart packs the chart as a release does: it has the release's version, and every file.
func TestPackedChart(t *testing.T) {
	t.Parallel()
	path, err := exec.Command("../../deploy/release/chart.sh", t.TempDir(), "9.0.0-rc.1").Output()
	if err != nil {
		t.Fatalf("chart.sh: %v", err)
	}
	packed, source := load(t, strings.TrimSpace(string(path))), load(t, folder)
	if version := packed.Metadata.Version + " " + packed.Metadata.AppVersion; version !=
		"9.0.0-rc.1 9.0.0-rc.1" {
		t.Errorf("got version %s, want 9.0.0-rc.1 of both", version)
	}
	for _, c := range []*chart.Chart{packed, source} {
		c.Raw = slices.DeleteFunc(c.Raw, func(file *chart.File) bool {
			return file.Name == "Chart.yaml"
		})
	}
	if !slices.EqualFunc(packed.Raw, source.Raw, func(a, b *chart.File) bool {
		return a.Name == b.Name && bytes.Equal(a.Data, b.Data)
	}) {
		t.Error("the packed chart has other files than the folder")
	}
}

// TestPagesNameEachValue checks that the page about Kubernetes describes each value of the chart.
func TestPagesNameEachValue(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../deploy/docs/kubernetes.md")
	streamstest.Must(t, err)
	for name, value := range load(t, folder).Values {
		names := []string{name}
		if group, ok := value.(map[string]any); ok && len(group) > 0 {
			names = nil
			for inner := range group {
				names = append(names, name+"."+inner)
			}
		}
		for _, name := range names {
			if !bytes.Contains(page, []byte("`"+name+"`")) {
				t.Errorf("kubernetes.md does not describe %s", name)
			}
		}
	}
}

const folder = "../../deploy/helm/hubcloud"

func load(t *testing.T, path string) *chart.Chart {
	t.Helper()
	loaded, err := loader.Load(path)
	streamstest.Must(t, err)
	return loaded
}

// manifests renders the chart as release "hub", with values over the common ones.
func manifests(t *testing.T, values ...string) (map[string]string, error) {
	t.Helper()
	all := map[string]any{}
	for _, layer := range append([]string{common}, values...) {
		var parsed map[string]any
		if err := sigsyaml.Unmarshal([]byte(layer), &parsed); err != nil {
			t.Fatalf("%s: %v", layer, err)
		}
		all = chartutil.CoalesceTables(parsed, all)
	}
	loaded := load(t, folder)
	release := chartutil.ReleaseOptions{Name: "hub", Namespace: "hubs", Revision: 1, IsInstall: true}
	rendered, err := chartutil.ToRenderValues(loaded, all, release, chartutil.DefaultCapabilities)
	if err != nil {
		return nil, err
	}
	strict := engine.Engine{Strict: true}
	return strict.Render(loaded, rendered)
}

// render returns the objects of the rendered chart, by kind and name. It decodes them as an API
// server does with strict validation: fields that the types do not have are errors.
func render(t *testing.T, values ...string) map[string]runtime.Object {
	t.Helper()
	files, err := manifests(t, values...)
	streamstest.Must(t, err)
	types := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{scheme.AddToScheme, monitoring.AddToScheme} {
		streamstest.Must(t, add(types))
	}
	decoder := serializer.NewCodecFactory(types, serializer.EnableStrict).UniversalDeserializer()
	objects := map[string]runtime.Object{}
	for name, text := range files {
		if strings.HasSuffix(name, "NOTES.txt") {
			if !strings.Contains(text, "--namespace hubs exec ") {
				t.Errorf("NOTES.txt: %s", text)
			}
			continue
		}
		documents := yaml.NewDocumentDecoder(io.NopCloser(strings.NewReader(text)))
		for {
			document := make([]byte, 1<<20)
			n, err := documents.Read(document)
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if emptyDocument.Match(document[:n]) {
				continue
			}
			object, kind, err := decoder.Decode(document[:n], nil, nil)
			if err != nil {
				t.Fatalf("%s: %v\n%s", name, err, document[:n])
			}
			id := kind.Kind + "/" + object.(meta.Object).GetName()
			if objects[id] != nil {
				t.Errorf("%s: %s is there twice", name, id)
			}
			objects[id] = object
		}
	}
	return objects
}

// emptyDocument matches a document of nothing but comments.
var emptyDocument = regexp.MustCompile(`\A(\s|---|#[^\n]*(\n|\z))*\z`)

// fit checks that objects refer to each other by names, labels and ports that exist.
func fit(t *testing.T, objects map[string]runtime.Object) {
	t.Helper()
	var pods []core.PodTemplateSpec
	for id, object := range objects {
		switch object := object.(type) {
		case *apps.Deployment:
			selects(t, id, object.Spec.Selector, []core.PodTemplateSpec{object.Spec.Template})
			pods = append(pods, object.Spec.Template)
		case *apps.StatefulSet:
			selects(t, id, object.Spec.Selector, []core.PodTemplateSpec{object.Spec.Template})
			if objects["Service/"+object.Spec.ServiceName] == nil {
				t.Errorf("%s: there is no service %s", id, object.Spec.ServiceName)
			}
			pods = append(pods, withClaims(object))
		case *batch.CronJob:
			pods = append(pods, object.Spec.JobTemplate.Spec.Template)
		}
	}
	for _, pod := range pods {
		restricted(t, pod.Spec)
	}
	for id, object := range objects {
		switch object := object.(type) {
		case *core.Service:
			selected := selects(t, id, meta.SetAsLabelSelector(object.Spec.Selector), pods)
			for _, port := range object.Spec.Ports {
				hasPort(t, id, selected, port.TargetPort.StrVal)
			}
		case *networking.NetworkPolicy:
			selected := selects(t, id, &object.Spec.PodSelector, pods)
			for _, rule := range object.Spec.Ingress {
				hasPort(t, id, selected, rule.Ports[0].Port.StrVal)
			}
		case *policy.PodDisruptionBudget:
			selects(t, id, object.Spec.Selector, pods)
		case *networking.Ingress:
			rule := object.Spec.Rules[0]
			if backend := rule.HTTP.Paths[0].Backend.Service; rule.Host != "hubs.example.org" ||
				objects["Service/"+backend.Name] == nil {
				t.Errorf("%s: got host %s and service %s", id, rule.Host, backend.Name)
			}
		case *monitoring.ServiceMonitor:
			service := objects["Service/hub-metrics"].(*core.Service)
			selector, err := meta.LabelSelectorAsSelector(&object.Spec.Selector)
			if err != nil || !selector.Matches(labels.Set(service.Labels)) ||
				service.Labels[object.Spec.JobLabel] != "hubcloud" ||
				service.Spec.Ports[0].Name != object.Spec.Endpoints[0].Port {
				t.Errorf("%s does not find the port for metrics: %+v, %v", id, object.Spec, err)
			}
		case *monitoring.PrometheusRule:
			var rules monitoring.PrometheusRuleSpec
			text, err := os.ReadFile("../../deploy/prometheus/hubcloud.rules.yaml")
			if err == nil {
				err = sigsyaml.UnmarshalStrict(text, &rules)
			}
			if err != nil || len(rules.Groups) == 0 ||
				len(object.Spec.Groups[0].Rules) != len(rules.Groups[0].Rules) {
				t.Errorf("%s has other rules than hubcloud.rules.yaml: %v", id, err)
			}
		}
	}
	addresses(t, objects)
}

// addresses checks that the service finds the brokers of the chart under their names.
func addresses(t *testing.T, objects map[string]runtime.Object) {
	t.Helper()
	brokers, ok := objects["StatefulSet/hub-nats"].(*apps.StatefulSet)
	if !ok {
		return
	}
	urls := objects["ConfigMap/hub"].(*core.ConfigMap).Data["HUBCLOUD_NATS_URL"]
	want := "tls://hub-nats-0.hub-nats:4222,tls://hub-nats-1.hub-nats:4222," +
		"tls://hub-nats-2.hub-nats:4222"
	if urls != want || *brokers.Spec.Replicas != 3 || brokers.Spec.ServiceName != "hub-nats" {
		t.Errorf("the service uses %s, want %s", urls, want)
	}
}

// selects returns the pods that a selector matches, and fails if there are none.
func selects(
	t *testing.T, id string, by *meta.LabelSelector, pods []core.PodTemplateSpec,
) (selected []core.PodTemplateSpec) {
	t.Helper()
	selector, err := meta.LabelSelectorAsSelector(by)
	if err != nil {
		t.Fatalf("%s: %v", id, err)
	}
	for _, pod := range pods {
		if selector.Matches(labels.Set(pod.Labels)) {
			selected = append(selected, pod)
		}
	}
	if selector.Empty() || len(selected) == 0 {
		t.Errorf("%s selects no pods: %s", id, selector)
	}
	return selected
}

// hasPort checks that each pod has a port of a name.
func hasPort(t *testing.T, id string, pods []core.PodTemplateSpec, name string) {
	t.Helper()
	for _, pod := range pods {
		if !slices.ContainsFunc(pod.Spec.Containers[0].Ports, func(port core.ContainerPort) bool {
			return port.Name == name
		}) {
			t.Errorf("%s: its pods have no port %q", id, name)
		}
	}
}

// withClaims returns the template of a StatefulSet with its claims as volumes.
func withClaims(set *apps.StatefulSet) core.PodTemplateSpec {
	pod := *set.Spec.Template.DeepCopy()
	for _, claim := range set.Spec.VolumeClaimTemplates {
		pod.Spec.Volumes = append(pod.Spec.Volumes, core.Volume{Name: claim.Name})
	}
	return pod
}

// restricted checks that a pod meets the strictest of the standard pod security levels, and mounts
// each of its volumes.
func restricted(t *testing.T, pod core.PodSpec) {
	t.Helper()
	container := pod.Containers[0]
	security := container.SecurityContext
	if !*pod.SecurityContext.RunAsNonRoot || *security.AllowPrivilegeEscalation ||
		!*security.ReadOnlyRootFilesystem || *pod.AutomountServiceAccountToken ||
		!slices.Equal(security.Capabilities.Drop, []core.Capability{"ALL"}) ||
		pod.SecurityContext.SeccompProfile.Type != core.SeccompProfileTypeRuntimeDefault {
		t.Errorf("%s has more rights than it needs", container.Name)
	}
	var volumes, mounts []string
	for _, volume := range pod.Volumes {
		volumes = append(volumes, volume.Name)
	}
	for _, mount := range container.VolumeMounts {
		mounts = append(mounts, mount.Name)
	}
	slices.Sort(volumes)
	slices.Sort(mounts)
	if !slices.Equal(volumes, mounts) {
		t.Errorf("%s mounts %q, the pod has %q", container.Name, mounts, volumes)
	}
}
