package doctor

import (
	"maps"
	"strings"
	"testing"
	"time"

	"hubcloud/domain"
	"hubcloud/streams/directory"
	"hubcloud/streams/installationtest"
	"hubcloud/streams/streamstest"
)

// The newest events of the directory are read before the older ones, whose certificates they
// replace and revoke. Regression: a certificate that ended with the secret was reported as expired.
func TestNewestFactsCount(t *testing.T) {
	t.Parallel()
	log, err := directory.Open(t.Context(), streamstest.Start(t), 1)
	streamstest.Must(t, err)
	service := directory.NewService(log, directory.ServiceConfig{
		Environment: domain.EnvironmentDev, Connections: &installationtest.Connections{},
	})
	secret := make([]byte, 32)
	end := time.Now().Add(time.Hour).UTC().Truncate(time.Second)
	issue := func(hub domain.HubID, digit string, end time.Time) {
		t.Helper()
		err := service.IssueCertificate(
			t.Context(), installationtest.Operator, hub, domain.IssueCertificate{
				Fingerprint: strings.Repeat(digit, 64), ExpiresAt: end, SecretHash: secret,
			},
		)
		streamstest.Must(t, err)
	}
	const kept, renewed, revoked = "hub-aaaa-aaaa-aaaa", "hub-bbbb-bbbb-bbbb", "hub-cccc-cccc-cccc"
	for i, hub := range []domain.HubID{kept, renewed, revoked} {
		err := service.RegisterHub(t.Context(), installationtest.Operator, hub, secret)
		streamstest.Must(t, err)
		issue(hub, string(rune('1'+i)), end)
	}
	issue(renewed, "4", end.Add(time.Hour))
	if _, err := service.RotateSecret(
		t.Context(), installationtest.Operator, revoked, false,
	); err != nil {
		t.Fatal(err)
	}
	ends := map[domain.HubID]time.Time{kept: end, renewed: end.Add(time.Hour)}
	issued := map[domain.HubID]int{kept: 1, renewed: 2, revoked: 1}
	for newest := range uint64(12) {
		facts, err := readHubFacts(t.Context(), log, newest)
		if err != nil || facts.read != facts.events || facts.events == 0 ||
			!maps.EqualFunc(facts.ends, ends, time.Time.Equal) ||
			!maps.Equal(facts.issued, issued) {
			t.Errorf(
				"the newest %d first: got %+v, %v, want %v and %v", newest, facts, err, ends, issued,
			)
		}
	}
}
