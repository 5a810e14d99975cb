package identity_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	mqtt "github.com/eclipse/paho.mqtt.golang"
	"github.com/nats-io/nats-server/v2/server"

	"hubcloud/domain"
	"hubcloud/hubbridge/identity"
	"hubcloud/streams"
	"hubcloud/streams/installationtest"
	"hubcloud/streams/streamstest"
)

// add adds a hub to a new organization, so that its certificate can be revoked.
func (i *installation) add(t testing.TB, id domain.HubID) {
	t.Helper()
	i.streams.CreateOrganization(t)
	i.streams.AddHub(t, id)
}

// resetLink revokes the hub's certificate and cuts its connections.
func (i *installation) resetLink(t testing.TB, id domain.HubID) {
	t.Helper()
	state, _, err := i.streams.Directory.Hub(t.Context(), id)
	streamstest.Must(t, err)
	streamstest.Must(t, i.streams.Directory.ResetLink(
		t.Context(), installationtest.Operator, state.OrgID, id,
	))
}

// listed returns the number of the broker's connections with a client id.
func (i *installation) listed(t testing.TB, id domain.HubID) int {
	t.Helper()
	question := fmt.Sprintf(
		`{"acc": %q, "mqtt_client": %q}`, streams.ShardAccount(streams.ShardOf(id, shards)), id,
	)
	answer, err := i.conns.Sys.Request("$SYS.REQ.SERVER.PING.CONNZ", []byte(question), testTimeout)
	streamstest.Must(t, err)
	var list struct {
		Data server.Connz `json:"data"`
	}
	streamstest.Must(t, json.Unmarshal(answer.Data, &list))
	return len(list.Data.Conns)
}

// TestDisconnect: Disconnect cuts connections with the given certificates and no others.
func TestDisconnect(t *testing.T) {
	t.Parallel()
	i := start(t)
	h, other := i.newHub(t, 1), i.newHub(t, 2)
	_, lost := mustConnect(t, h.options())
	_, otherLost := mustConnect(t, other.options())

	if cut, err := identity.Disconnect(t.Context(), i.conns, h.id, other.fingerprint()); err != nil || cut != 0 {
		t.Fatalf("with another certificate: cut %d, %v", cut, err)
	}
	if cut, err := identity.Disconnect(
		t.Context(), i.conns, h.id, other.fingerprint(), h.fingerprint(),
	); err != nil || cut != 1 {
		t.Fatalf("with its own certificate: cut %d, %v", cut, err)
	}
	mustEnd(t, "kicked", lost)
	if cut, err := identity.Disconnect(t.Context(), i.conns, h.id); err != nil || cut != 0 {
		t.Fatalf("a hub that is away: cut %d, %v", cut, err)
	}
	if cut, err := identity.Disconnect(t.Context(), i.conns, other.id); err != nil || cut != 1 {
		t.Fatalf("with any certificate: cut %d, %v", cut, err)
	}
	mustEnd(t, "kicked", otherLost)
}

// TestResetLink: a reset of the link revokes all certificates of the hub and cuts connections with
// them. It spares connections with later certificates, also when it repeats the search.
func TestResetLink(t *testing.T) {
	t.Parallel()
	i := start(t)
	former := i.newHub(t, 1)
	i.add(t, former.id)
	_, formerLost := mustConnect(t, former.options())
	i.enrol(t, former.id)

	i.resetLink(t, former.id)
	mustEnd(t, "revoked", formerLost)
	mustBeRejected(t, "revoked", former.options())

	_, lost := mustConnect(t, i.enrol(t, former.id).options())
	select {
	case <-lost:
		t.Error("the connection with a later certificate was cut")
	case <-time.After(2500 * time.Millisecond):
	}
}

// TestResetLinkWhileConnecting: no connection outlives a reset of the link that happens while the
// hub connects.
func TestResetLinkWhileConnecting(t *testing.T) {
	t.Parallel()
	i := start(t)
	h := i.newHub(t, 1)
	i.add(t, h.id)
	for range 10 {
		client := mqtt.NewClient(i.enrol(t, h.id).options())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			if token := client.Connect(); token.Wait() && token.Error() == nil {
				streamstest.Poll(testTimeout, func() bool { return !client.IsConnectionOpen() })
			}
		}()
		i.resetLink(t, h.id)
		mustEnd(t, "a connection with a revoked certificate", ended)
	}
}
