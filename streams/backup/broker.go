package backup

import (
	"fmt"
	"strings"

	"github.com/nats-io/nats.go"

	"hubcloud/streams"
)

// isHubLog tells the streams of hub logs from what else a shard's account has.
func isHubLog(stream string) bool { return strings.HasPrefix(stream, streams.HubStream("")) }

// account gives the connection to an account, as a manifest names it.
func account(conns *streams.Conns, name streams.Account) (*nats.Conn, error) {
	if name == streams.AccountCloud {
		return conns.Cloud, nil
	}
	for i, nc := range conns.Shards {
		if name == streams.ShardAccount(i) {
			return nc, nil
		}
	}
	return nil, fmt.Errorf("%w: there is no account %q", ErrDamaged, name)
}
