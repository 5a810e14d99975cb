package consumer

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hubcloud/test/harness"
)

// shell runs commands of the binary with a configuration folder of its own, and without the
// variables that name a service or a key.
type shell struct {
	home string
	env  []string
}

func newShell(t *testing.T) *shell {
	t.Helper()
	home := t.TempDir()
	return &shell{home: home, env: []string{
		"HOME=" + home, "XDG_CONFIG_HOME=" + filepath.Join(home, ".config"),
		"PATH=" + filepath.Dir(harness.Binary(t)) + ":" + os.Getenv("PATH"),
	}}
}

// run runs a program in the folder and returns its output and exit code.
func (s *shell) run(t *testing.T, input string, line ...string) (out, errs string, code int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, line[0], line[1:]...)
	var stdout, stderr bytes.Buffer
	command.Stdin, command.Stdout, command.Stderr = strings.NewReader(input), &stdout, &stderr
	command.Dir, command.Env = s.home, s.env
	if err := command.Run(); err != nil && command.ProcessState == nil {
		t.Fatal(err)
	}
	return stdout.String(), stderr.String(), command.ProcessState.ExitCode()
}

// profiles logs in, uses the profile, and logs out.
func profiles(t *testing.T, target *harness.Target) {
	service := target.OwnService()
	tenant := target.Tenant("Profiles")
	hub := newHub(t, target, tenant)
	_, narrow := service.Key(tenant.Org, "sites:read")
	s := newShell(t)
	binary := harness.Binary(t)
	file := filepath.Join(s.home, ".config", "hubcloud", "profiles.json")
	expect := func(input string, code int, in, inErr string, args ...string) {
		t.Helper()
		out, errs, got := s.run(t, input, append([]string{binary}, args...)...)
		if got != code || !strings.Contains(out, in) || !strings.Contains(errs, inErr) ||
			strings.Contains(out+errs, tenant.Key) || code != 0 && strings.Count(errs, "\n") != 1 {
			t.Errorf(
				"%v: got exit code %d: %s%s\nwant %d, %q and %q", args, got, out, errs, code, in,
				inErr,
			)
		}
	}
	expect("", 1, "", "no service is running", "hubs")
	expect("", 2, "", "--url", "login")
	expect("", 2, "", "--url", "login", "--url", "localhost")
	expect("", 2, "", "--profile", "login", "--url", service.Public(), "--profile", "../x")
	expect("", 2, "", "standard input", "login", "--url", service.Public())
	expect("secret\n", 2, "", "not an API key", "login", "--url", service.Public())
	unknown := tenant.Key[:len(tenant.Key)-8] + "AAAAAAAA"
	expect(unknown+"\n", 2, "", "not an API key", "login", "--url", service.Public())
	if _, err := os.Stat(file); err == nil {
		t.Error("a failed login has stored a profile")
	}

	expect(tenant.Key+"\n", 0, "profile default", "", "login", "--url", service.Public())
	expect(narrow, 0, tenant.Base, "", "login", "--url", tenant.Base+"/", "--profile", "narrow")
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("profiles: got %v, %v, want mode 0600", info, err)
	}
	expect("", 0, hub.ID(), "", "hubs")
	expect("", 0, "Front door", "", "devices", hub.ID())
	expect("", 0, "lock: false requested", "", "send", hub.ID(), "1", "lock", "false", "--wait")
	expect("", 0, "channel.desired", "", "events", hub.ID())
	expect("", 1, "", "hubs:read", "hubs", "--profile", "narrow")
	expect("", 2, "", "no such profile", "hubs", "--profile", "none")
	expect("", 2, "", "one of them", "hubs", "--profile", "narrow", "--data-dir", service.Dir)
	// the profile's key is not for another address
	expect("", 2, "", "no API key", "hubs", "--url", service.Public())
	expect("", 1, "", "no service is running", "hubs", "--data-dir", s.home)
	expect("", 0, `"profile":"narrow"`, "", "profiles", "--json")
	expect("", 0, "PROFILE", "", "profiles")

	// variables win over the profile
	s.env = append(s.env, "HUBCLOUD_PROFILE=narrow")
	expect("", 1, "", "hubs:read", "hubs")
	s.env = append(s.env, "HUBCLOUD_API_KEY="+tenant.Key)
	expect("", 0, hub.ID(), "", "hubs")
	s.env = s.env[:len(s.env)-2]

	expect("", 0, "profile narrow", "stays valid", "logout", "--profile", "narrow")
	expect("", 2, "", "no such profile", "logout", "--profile", "narrow")
	harness.Must(t, os.Chmod(file, 0o644))
	expect("", 2, "", "chmod 600", "hubs")
}

// lists lists what operators can make.
func lists(t *testing.T, target *harness.Target) {
	service := target.OwnService()
	one, two := target.Tenant("First"), target.Tenant("Second")
	orgs := service.CLI("org", "list")
	if len(orgs) != 2 || orgs[0]["org_id"] != one.Org || orgs[1]["name"] != "Second" ||
		orgs[0]["owners"].([]any)[0] != one.Owner || orgs[0]["members"] != 1.0 {
		t.Errorf("org list: got %v, want First and Second", orgs)
	}
	id, _ := service.Key(one.Org, "sites:read", "hubs:read")
	keys := service.CLI("key", "list", "--org", one.Org)
	if len(keys) != 2 || keys[0]["key_id"] != one.KeyID || keys[1]["key_id"] != id ||
		keys[1]["revoked_at"] != nil || len(keys[1]["scopes"].([]any)) != 2 {
		t.Errorf("key list --org: got %v, want two", keys)
	}
	service.CLI("key", "revoke", id)
	if keys := service.CLI("key", "list"); len(keys) != 2 || keys[1]["org_id"] != two.Org {
		t.Errorf("key list after one was revoked: got %v, want one of each organization", keys)
	}
	if keys := service.CLI("key", "list", "--revoked"); len(keys) != 3 ||
		keys[2]["revoked_at"] == nil {
		t.Errorf("key list --revoked: got %v, want the revoked key too", keys)
	}
	service.Inventory(1)
	for _, tt := range []struct {
		args []string
		want []string
	}{
		{[]string{"org", "list"}, []string{"ORGANIZATION", one.Org, one.Owner}},
		{[]string{"key", "list"}, []string{"KEY", one.KeyID, "all"}},
		{[]string{"inventory", "list"}, []string{"SERIAL", "TRY-"}},
	} {
		out, errs, code := harness.RunBinary(
			t, append(tt.args, "--data-dir", service.Dir)...,
		)
		for _, want := range tt.want {
			if code != 0 || !strings.Contains(out, want) {
				t.Errorf("%v: got exit code %d: %s%s\nwant %q", tt.args, code, out, errs, want)
			}
		}
	}
	out, errs, code := harness.RunBinary(
		t, "key", "list", "--org", "nobody", "--data-dir", service.Dir,
	)
	if code != 2 || strings.Count(errs, "\n") != 1 || !strings.Contains(errs, "org list") {
		t.Errorf("key list of nobody: got exit code %d: %s%s", code, out, errs)
	}
}

// TestCompletion completes command lines in the shells that are installed.
func TestCompletion(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	binary := harness.Binary(t)
	for _, tt := range []struct {
		words []string
		want  string // the candidates, joined by spaces
	}{
		{[]string{"proj"}, "projections"},
		{[]string{"key", ""}, "create list rotate revoke"},
		{[]string{"key", "create", "--all"}, "--all-scopes"},
		{[]string{"key", "create", "--org", ""}, ""},
		{[]string{"completion", ""}, "bash zsh fish"},
		{[]string{"serve", "--environment", ""}, "live dev"},
		{[]string{"serve", "--environment=d"}, "--environment=dev"},
		{[]string{"hubs", "nothing", ""}, ""},
		{[]string{"compl"}, "completion"},
	} {
		out, errs, code := s.run(t, "", append([]string{binary, "complete", "--"}, tt.words...)...)
		if got := strings.Join(strings.Fields(out), " "); code != 0 || got != tt.want {
			t.Errorf("%q: got exit code %d: %s%s, want %q", tt.words, code, got, errs, tt.want)
		}
	}
	_, errs, code := s.run(t, "", binary, "completion", "tcsh")
	if code != 2 || strings.Count(errs, "\n") != 1 {
		t.Errorf("completion tcsh: got exit code %d: %s, want 2 and one line", code, errs)
	}
	for name, script := range map[string][]string{
		"bash": {"-c", `source <(hubcloud completion bash)
COMP_WORDS=(hubcloud key cr) COMP_CWORD=2; _hubcloud; echo "${COMPREPLY[@]}"`},
		"zsh": {"-f", "-c", `autoload -U compinit; compinit -u; source <(hubcloud completion zsh)
compadd() { shift 4; echo "$@" }; words=(hubcloud key cr) CURRENT=3; _hubcloud`},
		"fish": {"--no-config", "-c", `hubcloud completion fish | source
complete -C 'hubcloud key cr'`},
	} {
		t.Run(name, func(t *testing.T) {
			path, err := exec.LookPath(name)
			if err != nil {
				t.Skipf("NOT TRIED: %v", err)
			}
			out, errs, code := s.run(t, "", append([]string{path}, script...)...)
			if code != 0 || strings.TrimSpace(out) != "create" {
				t.Errorf("got exit code %d: %s%s, want the candidate create", code, out, errs)
			}
		})
	}
}
