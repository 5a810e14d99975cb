package bench

import (
	"encoding/pem"
	"fmt"
	"testing"

	"hubcloud/domain"
	"hubcloud/hubbridge/identity"
	"hubcloud/streams"
	"hubcloud/test/harness"
)

// defaultShards is the service's default number of shards.
const defaultShards = 16

// authority issues certificates for the bare broker and its hubs as the service does.
type authority struct {
	t testing.TB
	*identity.Authority
}

func newAuthority(t testing.TB) *authority {
	t.Helper()
	a, err := identity.OpenAuthority(identity.AuthorityConfig{Dir: t.TempDir()})
	harness.Must(t, err)
	return &authority{t, a}
}

// startBroker starts a bare broker and sets its certificates.
func (a *authority) startBroker(config bareBrokerConfig) *bare {
	a.t.Helper()
	node, err := a.IssueNode()
	harness.Must(a.t, err)
	config.Authority = string(a.CAPEM())
	config.Certificate, config.Key = string(node.Certificate), string(node.Key)
	return startBare(a.t, roleBroker, config)
}

// hubs creates hubs for a bare broker, each with its own certificate and the user of its shard.
func (a *authority) hubs(b *bare, shards, count int) []*hub {
	a.t.Helper()
	var made []*hub
	for i := range count {
		id := domain.HubID(fmt.Sprintf("bench-bare-0000-%04d", i))
		key, _, err := newKey()
		harness.Must(a.t, err)
		issued, err := a.IssueHub(id, key.Public())
		harness.Must(a.t, err)
		block, _ := pem.Decode(issued.PEM)
		config, err := clientTLS(a.CAPEM(), block.Bytes, key)
		harness.Must(a.t, err)
		made = append(made, &hub{
			ID: string(id), broker: b.ready.MQTT, tls: config, next: firstNumber,
			user: string(streams.ShardAccount(streams.ShardOf(id, shards))), password: password,
		})
	}
	return made
}
