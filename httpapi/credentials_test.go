package httpapi

import (
	"context"
	"testing"

	"hubcloud/domain"
	"hubcloud/hubbridge/commands"
	"hubcloud/projections/projectionstest"
	"hubcloud/streams"
	"hubcloud/streams/streamstest"
)

// newCodes returns what keeps the codes of locks of hubs that are never online.
func newCodes(t testing.TB, b *projectionstest.Backend) *commands.Codes {
	t.Helper()
	caller, err := commands.NewCaller(b.Conns, offline{}, commands.CallerConfig{})
	streamstest.Must(t, err)
	t.Cleanup(caller.Close)
	vault, err := streams.NewVault(make([]byte, 32))
	streamstest.Must(t, err)
	codes, err := commands.NewCodes(commands.CodesConfig{
		Directory: b.Directory, Locks: commands.NewDevices(caller, nil, nil),
		Presence: offline{}.Get, KV: b.Buckets.Codes,
		Conn: b.Conns.Cloud, Vault: vault, Parts: 1,
	})
	streamstest.Must(t, err)
	return codes
}

type offline struct{}

func (offline) Online(domain.HubID) bool { return false }

func (offline) Get(domain.HubID) (p domain.Presence, ok bool) { return p, false }

func (offline) Fetch(
	context.Context, domain.HubID,
) (p domain.Presence, ok bool, err error) {
	return p, false, nil
}
