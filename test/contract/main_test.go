package contract

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"hubcloud/test/harness"
)

func TestMain(m *testing.M) {
	flag.Parse()
	// The tests wait for hubs, mails and limits far more than they compute.
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	code := m.Run()
	if code == 0 && whole() {
		for _, answer := range harness.UntestedAnswers() {
			fmt.Fprintln(os.Stderr, "openapi.yaml describes what no test has got:", answer)
			code = 1
		}
	}
	harness.RemoveBinary()
	os.Exit(code)
}

// whole reports whether all tests have run, on a service with all rights.
func whole() bool {
	for _, name := range []string{"test.run", "test.skip", "test.list", "test.fuzz"} {
		if flag.Lookup(name).Value.String() != "" {
			return false
		}
	}
	return os.Getenv(harness.EnvURL) == ""
}

// part is one part of the contract.
type part struct {
	name string
	try  func(*testing.T, *harness.Target)
}

func try(t *testing.T, c *harness.Target, parts []part) {
	for _, p := range parts {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			p.try(t, c.For(t))
		})
	}
}

// TestContract tries the service with the limits that the contract gives.
func TestContract(t *testing.T) {
	t.Parallel()
	try(t, harness.NewTarget(t), []part{
		{"authentication", authentication},
		{"scopes", scopes},
		{"limits", limits},
		{"sites", sites},
		{"hubs", hubs},
		{"hub list", hubList},
		{"foreign hubs", foreignHubs},
		{"adoption races", adoptionRaces},
		{"devices", devices},
		{"device labels", deviceLabels},
		{"device errors", deviceErrors},
		{"windows", windows},
		{"commands", commands},
		{"command values", commandValues},
		{"idempotency", idempotency},
		{"creations", creations},
		{"late answers", lateAnswers},
		{"events", events},
		{"event types", eventTypes},
		{"stream", stream},
		{"resync", resync},
		{"members", members},
		{"invitations", invitations},
		{"member races", memberRaces},
		{"errors", errorBodies},
		{"hostile", hostile},
		{"slow senders", slowSenders},
		{"versioning", versioning},
		{"description", description},
	})
}

// TestShortLimits tries what comes after a limit has run out, with limits that can be waited for.
func TestShortLimits(t *testing.T) {
	t.Parallel()
	c := harness.NewTarget(
		t, "--event-retention", "5s", "--stream-keepalive", "500ms", "--stream-lifetime", "3s",
		"--hub-timeout", "1s", "--invitation-ttl", "8s", "--idempotency-window", "8s",
		"--streams-per-key", "3", "--rate", "100000", "--burst", "100000",
	)
	c.OwnService()
	try(t, c, []part{
		{"retention", retention},
		{"stream ends", streamEnds},
		{"streams per key", streamsPerKey},
		{"hub timeouts", hubTimeouts},
		{"idempotency window", idempotencyWindow},
		{"invitation expiry", invitationExpiry},
	})
}

// TestQuotas tries the bounds of organizations, with some that are soon reached.
func TestQuotas(t *testing.T) {
	t.Parallel()
	c := harness.NewTarget(
		t, "--sites-per-org", "5", "--idempotency-keys-per-org", "4", "--calls-per-hub", "3",
		"--hub-timeout", "8s", "--invitations-per-address", "10",
	)
	c.OwnService()
	try(t, c, []part{{"quotas", quotas}})
}

// TestRestart tries what must outlive the process.
func TestRestart(t *testing.T) {
	t.Parallel()
	c := harness.NewTarget(t)
	c.OwnService()
	killed(t, c)
}
