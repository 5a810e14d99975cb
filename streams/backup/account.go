package backup

import (
	"fmt"
	"strings"

	"github.com/nats-io/nats.go"

	"hubcloud/streams"
)

// isHubLog reports whether a stream of a shard's account is a hub log.
func isHubLog(stream string) bool { return strings.HasPrefix(stream, streams.HubStream("")) }

// accountConn returns the connection to the account of a stream in a manifest. An account that the
// installation does not have is ErrDamaged.
func accountConn(conns *streams.Conns, account streams.Account) (*nats.Conn, error) {
	if account == streams.AccountCloud {
		return conns.Cloud, nil
	}
	for i, nc := range conns.Shards {
		if account == streams.ShardAccount(i) {
			return nc, nil
		}
	}
	return nil, fmt.Errorf("%w: unknown account %q", ErrDamaged, account)
}
