package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"hubcloud/streams/streamstest"
)

var (
	fromLine  = regexp.MustCompile(`(?m)^FROM (\S+)(?: AS (\S+))?$`)
	imageLine = regexp.MustCompile(`(?m)^\s*image: (\S+)`)
	required  = regexp.MustCompile(`^\$\{[A-Z]+_IMAGE:\?`)
	byDigest  = regexp.MustCompile(`@sha256:[0-9a-f]{64}$`)
)

// TestBaseImagesAreNamedByDigest checks that images from elsewhere are named by digest or by a
// required variable, since tags change their meaning. The Dockerfile rejects tags.
func TestBaseImagesAreNamedByDigest(t *testing.T) {
	t.Parallel()
	dockerfile := string(read(t, "image/Dockerfile"))
	stages := map[string]bool{"scratch": true}
	for _, from := range fromLine.FindAllStringSubmatch(dockerfile, -1) {
		image, stage := from[1], from[2]
		if !stages[image] && !byDigest.MatchString(image) {
			name, variable := strings.CutPrefix(image, "${")
			name = strings.TrimSuffix(name, "}")
			check := `RUN case "$` + name + `" in *@sha256:*) ;; *)`
			if !variable || !strings.Contains(dockerfile, "\nARG "+name+"\n") ||
				strings.Contains(dockerfile, "ARG "+name+"=") ||
				!strings.Contains(dockerfile, check) {
				t.Errorf(
					"FROM %s: must have a digest, or be an argument without a default whose "+
						"digest the Dockerfile checks",
					image,
				)
			}
		}
		stages[stage] = true
	}
	if len(stages) < 5 {
		t.Errorf("got only the stages %v", stages)
	}
	for _, file := range []string{"compose/one-node.yaml", "compose/cluster.yaml"} {
		for _, found := range imageLine.FindAllStringSubmatch(string(read(t, file)), -1) {
			if image := found[1]; !strings.HasPrefix(image, "hubcloud:") &&
				!byDigest.MatchString(image) &&
				!required.MatchString(image) {
				t.Errorf("%s: image %s: want a digest", file, image)
			}
		}
	}
}

// TestBaseImagesRejectTags runs the Dockerfile's check against tags.
func TestBaseImagesRejectTags(t *testing.T) {
	t.Parallel()
	found := regexp.MustCompile(`(?m)^RUN (case "\$([A-Z_]+)" in .* esac)$`).
		FindAllStringSubmatch(string(read(t, "image/Dockerfile")), -1)
	if len(found) != 2 {
		t.Fatalf("got %d checks", len(found))
	}
	for _, check := range found {
		for image, ok := range map[string]bool{
			"debian:12": false, "": false, "debian:12@sha256:" + strings.Repeat("0", 64): true,
		} {
			run := exec.Command("sh", "-c", check[1])
			run.Env = []string{check[2] + "=" + image}
			if err := run.Run(); (err == nil) != ok {
				t.Errorf("%s=%q: %v", check[2], image, err)
			}
		}
	}
}

// TestBaseImagesAreResolved runs base-images.sh with a fake docker that answers with and without a
// digest.
func TestBaseImagesAreResolved(t *testing.T) {
	t.Parallel()
	script, err := filepath.Abs("../../deploy/image/base-images.sh")
	streamstest.Must(t, err)
	digest := "sha256:" + strings.Repeat("ab", 32)
	for answer, ok := range map[string]bool{digest: true, "": false} {
		dir := t.TempDir()
		streamstest.Must(t, os.WriteFile(
			filepath.Join(dir, "docker"), []byte("#!/bin/sh\necho "+answer+"\n"), 0o755,
		))
		run := exec.Command("sh", script)
		run.Env = []string{"PATH=" + dir + ":" + os.Getenv("PATH")}
		out, err := run.Output()
		if (err == nil) != ok || ok && strings.Count(string(out), "@"+digest+"\n") != 4 {
			t.Errorf("the registry says %q: %v\n%s", answer, err, out)
		}
	}
}

// TestShippedConfigurationsTrustNobody checks the defaults of proxies. Regression: the Kubernetes
// configuration trusted X-Forwarded-For from 10.0.0.0/8, that is from every pod, and a proxy
// without a header timeout is blocked by clients that send slowly.
func TestShippedConfigurationsTrustNobody(t *testing.T) {
	t.Parallel()
	if values := string(read(t, "helm/hubcloud/values.yaml")); !strings.Contains(
		values, "\ntrustedProxies: []\n",
	) {
		t.Error("helm/hubcloud/values.yaml: trusted networks must be set by the operator")
	}
	if proxy := string(
		read(t, "compose/haproxy.cfg"),
	); !regexp.MustCompile(`(?m)^  timeout http-request [0-9]+s$`).
		MatchString(proxy) {
		t.Error("haproxy.cfg: want timeout http-request")
	}
}
