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

// TestEachAlertHasItsSection checks that each alert links to its own section of the runbook.
func TestEachAlertHasItsSection(t *testing.T) {
	t.Parallel()
	runbook, tests := string(read(t, "README.md")), string(
		read(t, "prometheus/hubcloud.rules.test.yaml"),
	)
	sections := map[string]string{}
	for _, section := range strings.Split(runbook, "\n### ")[1:] {
		name, text, _ := strings.Cut(section, "\n")
		sections[name] = text
	}
	for _, group := range readRules(t).Groups {
		for _, rule := range group.Rules {
			if want := "deploy/README.md#" + strings.ToLower(
				rule.Alert,
			); rule.Annotations["runbook_url"] != want {
				t.Errorf(
					"%s: got runbook_url %q, want %q", rule.Alert,
					rule.Annotations["runbook_url"], want,
				)
			}
			if rule.Annotations["summary"] == "" || rule.Annotations["description"] == "" {
				t.Errorf("%s: want a summary and a description", rule.Alert)
			}
			if !strings.Contains(sections[rule.Alert], "**Do:**") {
				t.Errorf("%s: runbook section has no instructions", rule.Alert)
			}
			if !strings.Contains(tests, "- name: "+rule.Alert+"\n") {
				t.Errorf("%s: not in hubcloud.rules.test.yaml", rule.Alert)
			}
			delete(sections, rule.Alert)
		}
	}
	for name := range sections {
		if strings.HasPrefix(name, "Hubcloud") {
			t.Errorf("runbook: section for unknown alert %s", name)
		}
	}
}

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
	noWord  = regexp.MustCompile("[^a-z0-9 _-]")
)

// tourStep is a link to a Go file in TOURS.md, followed by the function to read there.
var tourStep = regexp.MustCompile("\\]\\(([a-z/_]+\\.go)\\),\\s+`(?:([A-Za-z]+)\\.)?([A-Za-z]+)`")

// TestTours checks that each function that the tours send a reader to is declared in the file that
// they name.
func TestTours(t *testing.T) {
	t.Parallel()
	steps := tourStep.FindAllStringSubmatch(string(read(t, "../TOURS.md")), -1)
	if len(steps) < 30 {
		t.Errorf("got %d functions in the tours, want at least 30", len(steps))
	}
	for _, step := range steps {
		path, receiver, name := step[1], step[2], step[3]
		declared := `(?m)^func ` + name + `[\[(]`
		if receiver != "" {
			declared = `(?m)^func \(\w+ \*?` + receiver + `(\[\w+\])?\) ` + name + `\(`
		}
		if !regexp.MustCompile(declared).Match(read(t, "../"+path)) {
			t.Errorf(
				"TOURS.md: %s does not declare %s", path, strings.TrimLeft(receiver+"."+name, "."),
			)
		}
	}
}

// TestLinks follows every link of the runbook and of the guides.
func TestLinks(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob("../../deploy/docs/*.md")
	harness.Must(t, err)
	guides, err := filepath.Glob("../../httpapi/docs/*.md")
	harness.Must(t, err)
	pages = append(
		pages, "../../deploy/README.md", "../../README.md", "../../TOURS.md", "../../CONTRIBUTING.md",
		"../../httpapi/client/typescript/README.md",
	)
	for _, page := range append(pages, guides...) {
		text, err := os.ReadFile(page)
		harness.Must(t, err)
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

// anchors returns the anchors of a page's headings.
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

// TestCommandsAndSettings checks that the commands in the runbook and the settings in the files of
// deploy/ exist.
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
		t.Fatalf("got only %d commands", len(help))
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
		"README.md", "image/Dockerfile", "compose/one-node.yaml", "compose/https.yaml",
		"compose/cluster.yaml",
		"helm/hubcloud/values.yaml", "helm/hubcloud/templates/config.yaml", "docs/kubernetes.md",
		"systemd/hubcloud.env", "systemd/hubcloud.service",
	} {
		for _, name := range variable.FindAllString(string(read(t, file)), -1) {
			// These two belong to the compose file.
			if !strings.Contains(help["serve"], name) && name != "HUBCLOUD_GOMEMLIMIT" &&
				name != "HUBCLOUD_MEMORY" {
				t.Errorf("%s names %s, which `hubcloud serve` does not know", file, name)
			}
		}
	}
}

// isCommand reports whether the words after "hubcloud" are a command, not the rest of a path, name
// or sentence.
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
		t.Errorf("hubcloud %s --help: got exit code %d: %s", command, code, stderr)
	}
	return out
}
