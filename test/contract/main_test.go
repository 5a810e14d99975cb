package contract

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"hubcloud/test/harness"
)

func TestMain(m *testing.M) {
	// The tests wait for hubs, mails and limits far more than they compute.
	code := harness.Run(m, 8)
	if code == 0 && ranAll() {
		for _, answer := range harness.UntestedAnswers() {
			fmt.Fprintln(
				os.Stderr, "openapi.yaml describes an answer that no test received:", answer,
			)
			code = 1
		}
	}
	os.Exit(code)
}

// ranAll reports whether all tests ran, on a service that the suite started.
func ranAll() bool {
	for _, name := range []string{"test.run", "test.skip", "test.list", "test.fuzz"} {
		if flag.Lookup(name).Value.String() != "" {
			return false
		}
	}
	return os.Getenv(harness.EnvURL) == ""
}

// part is the test of one part of the contract.
type part struct {
	name string
	run  func(*testing.T, *harness.Target)
}

// runParts runs the parts as parallel subtests on one service.
func runParts(t *testing.T, c *harness.Target, parts []part) {
	for _, p := range parts {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			p.run(t, c.For(t))
		})
	}
}

// TestContract tests a service with the limits of the contract.
func TestContract(t *testing.T) {
	t.Parallel()
	runParts(t, harness.NewTarget(t), []part{
		{"authentication", authentication},
		{"scopes", scopes},
		{"limits", limits},
		{"sites", sites},
		{"hubs", hubs},
		{"hub list", hubList},
		{"foreign hubs", foreignHubs},
		{"devices", devices},
		{"states", states},
		{"past states", pastStates},
		{"device labels", deviceLabels},
		{"device errors", deviceErrors},
		{"windows", windows},
		{"commands", commandOutcomes},
		{"command values", commandValues},
		{"idempotency", idempotency},
		{"creations", creations},
		{"late answers", lateAnswers},
		{"events", events},
		{"event types", eventTypes},
		{"organization feed", orgFeed},
		{"audit log", auditLog},
		{"readers", readers},
		{"webhooks", webhooks},
		{"door codes", doorCodes},
		{"stream", stream},
		{"resync", resync},
		{"members", members},
		{"invitations", invitations},
		{"errors", errorBodies},
		{"hostile", hostile},
		{"slow senders", slowSenders},
		{"versioning", versioning},
		{"description", description},
	})
}

// TestShortLimits tests what happens after a limit in time has passed, with short limits.
func TestShortLimits(t *testing.T) {
	t.Parallel()
	c := harness.NewTarget(
		t, "--event-retention", shortRetention.String(), "--stream-keepalive", "500ms", "--stream-lifetime", "3s",
		"--hub-timeout", "1s", "--invitation-ttl", "8s", "--idempotency-window", "8s",
		"--streams-per-key", "3", "--rate", "100000", "--burst", "100000",
	)
	c.OwnService()
	runParts(t, c, []part{
		{"retention", retention},
		{"stream ends", streamEnds},
		{"stream of messages", streamOfMessages},
		{"streams per key", streamsPerKey},
		{"hub timeouts", hubTimeouts},
		{"idempotency window", idempotencyWindow},
		{"invitation expiry", invitationExpiry},
	})
}

// TestQuotas tests the quotas of organizations, with small quotas.
func TestQuotas(t *testing.T) {
	t.Parallel()
	c := harness.NewTarget(
		t, "--sites-per-org", "5", "--invitations-per-address", "10", "--rate", "1000", "--burst", "1000",
		"--hub-timeout", "30s", // so that a hub that never answers has many calls at once
	)
	c.OwnService()
	runParts(t, c, []part{{"quotas", quotas}})
}

// TestRestart tests what must survive a crash of the service.
func TestRestart(t *testing.T) {
	t.Parallel()
	c := harness.NewTarget(t)
	c.OwnService()
	killed(t, c)
}
