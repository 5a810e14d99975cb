package deploy

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"hubcloud/test/harness"
)

// TestEachAlertHasItsSection: whoever is called at night finds what the alert means by the address
// that it carries.
func TestEachAlertHasItsSection(t *testing.T) {
	t.Parallel()
	runbook, tests := string(read(t, "README.md")), string(read(t, "prometheus/hubcloud.rules.test.yaml"))
	sections := map[string]string{}
	for _, section := range strings.Split(runbook, "\n### ")[1:] {
		name, text, _ := strings.Cut(section, "\n")
		sections[name] = text
	}
	for _, group := range readRules(t).Groups {
		for _, rule := range group.Rules {
			if want := "deploy/README.md#" + strings.ToLower(rule.Alert); rule.Annotations["runbook_url"] != want {
				t.Errorf(
					"%s: runbook_url is %q and should be %q", rule.Alert,
					rule.Annotations["runbook_url"], want,
				)
			}
			if rule.Annotations["summary"] == "" || rule.Annotations["description"] == "" {
				t.Errorf("%s: has no summary or no description", rule.Alert)
			}
			if !strings.Contains(sections[rule.Alert], "**Do:**") {
				t.Errorf("%s: the runbook does not say what to do", rule.Alert)
			}
			if !strings.Contains(tests, "- name: "+rule.Alert+"\n") {
				t.Errorf("%s: is not tried in hubcloud.rules.test.yaml", rule.Alert)
			}
			delete(sections, rule.Alert)
		}
	}
	for name := range sections {
		if strings.HasPrefix(name, "Hubcloud") {
			t.Errorf("the runbook has a section about %s, which is no alert", name)
		}
	}
}

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
	noWord  = regexp.MustCompile("[^a-z0-9 _-]")
)

// TestLinks follows every link within the runbook and what it links to.
func TestLinks(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob("../../deploy/docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range append(pages, "../../deploy/README.md", "../../README.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range link.FindAllStringSubmatch(string(text), -1) {
			path, anchor, _ := strings.Cut(found[1], "#")
			if strings.Contains(path, "://") {
				continue
			}
			target := filepath.Join(filepath.Dir(page), path)
			if path == "" {
				target = page
			}
			content, err := os.ReadFile(target)
			if info, statErr := os.Stat(target); statErr == nil && info.IsDir() {
				err = nil
			}
			if err != nil {
				t.Errorf("%s: %v", page, err)
				continue
			}
			if anchor != "" && !slices.Contains(anchors(string(content)), anchor) {
				t.Errorf("%s: %s has no heading for #%s", page, target, anchor)
			}
		}
	}
}

// anchors are the names under which a page's headings can be linked to.
func anchors(page string) []string {
	var all []string
	for _, found := range heading.FindAllStringSubmatch(page, -1) {
		all = append(
			all,
			strings.ReplaceAll(noWord.ReplaceAllString(strings.ToLower(found[1]), ""), " ", "-"),
		)
	}
	return all
}

var (
	command = regexp.MustCompile(
		"hubcloud ((?:[a-z-]+)(?: " +
			"(?:status|stop|resume|skip|rebuild|verify|drop|create|generate|add|revoke|credentials))?)",
	)
	flagName = regexp.MustCompile("`(--[a-z-]+)")
	variable = regexp.MustCompile(`\bHUBCLOUD_[A-Z_]+\b`)
)

// TestCommandsAndSettings: what the runbook tells to type is there, and so is every setting in the
// files of this folder.
func TestCommandsAndSettings(t *testing.T) {
	t.Parallel()
	runbook := string(read(t, "README.md"))
	help := map[string]string{}
	for _, name := range []string{
		"serve", "broker-config", "doctor", "projections skip", "backup",
	} {
		help[name] = helpOf(t, name)
	}
	for _, found := range command.FindAllStringSubmatch(runbook, -1) {
		name := found[1]
		if _, known := help[name]; !known && isCommand(name) {
			help[name] = helpOf(t, name)
		}
	}
	if len(help) < 8 {
		t.Fatalf("only %d commands are found", len(help))
	}
	var everything strings.Builder
	for _, text := range help {
		everything.WriteString(text)
	}
	for _, found := range flagName.FindAllStringSubmatch(runbook, -1) {
		if !strings.Contains(everything.String(), found[1]) {
			t.Errorf("the runbook names %s, which no command has", found[1])
		}
	}
	for _, file := range []string{
		"README.md", "image/Dockerfile", "compose/one-node.yaml", "compose/cluster.yaml",
		"kubernetes/service.yaml", "kubernetes/secrets.example.yaml",
		"systemd/hubcloud.env", "systemd/hubcloud.service",
	} {
		for _, name := range variable.FindAllString(string(read(t, file)), -1) {
			// These two are the compose file's own.
			if !strings.Contains(help["serve"], name) && name != "HUBCLOUD_GOMEMLIMIT" &&
				name != "HUBCLOUD_MEMORY" {
				t.Errorf("%s names %s, which `hubcloud serve` does not know", file, name)
			}
		}
	}
}

// isCommand says whether what stands behind the word hubcloud is one, rather than the rest of a
// path, a name or a sentence.
func isCommand(words string) bool {
	first, _, _ := strings.Cut(words, " ")
	return slices.Contains(
		[]string{
			"org",
			"key",
			"inventory",
			"doctor",
			"ready",
			"backup",
			"restore",
			"projections",
			"tap",
			"broker-config",
			"broker-repair",
			"serve",
		},
		first,
	)
}

func helpOf(t *testing.T, command string) string {
	t.Helper()
	out, stderr, code := harness.RunBinary(t, append(strings.Fields(command), "--help")...)
	if code != 0 {
		t.Errorf("hubcloud %s --help: exit code %d: %s", command, code, stderr)
	}
	return out
}
