package doctor

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"hubcloud/streams"
)

const (
	// Every server answers these requests: with its statistics, and with its health.
	pingServers = "$SYS.REQ.SERVER.PING.STATSZ"
	pingHealth  = "$SYS.REQ.SERVER.PING.HEALTHZ"
	// nextTimeout is how long to wait for the next answer after the last one. Servers answer
	// concurrently, within milliseconds.
	nextTimeout = 400 * time.Millisecond
)

// serverInfo is a server's answer to pingServers. Stats.JetStream is nil on a server without
// streams.
type serverInfo struct {
	server.ServerStatsMsg
	// Before and After are this machine's clock before the request and after the answer.
	Before, After time.Time `json:"-"`
}

// readServers returns the servers that answer, sorted by name. When none answers, the error is
// nats.ErrTimeout or the error of ctx.
func readServers(ctx context.Context, sys *nats.Conn) ([]serverInfo, error) {
	var all []serverInfo
	before := time.Now()
	err := scatter(ctx, sys, pingServers, nil, func(data []byte) (enough bool, err error) {
		one := serverInfo{Before: before, After: time.Now()}
		if err := json.Unmarshal(data, &one); err != nil {
			return false, fmt.Errorf("decode the statistics of a server: %w", err)
		}
		all = append(all, one)
		return one.Server.Cluster == "" || len(all) == expected(all), nil
	})
	if err != nil {
		return nil, fmt.Errorf("request the statistics of the broker's servers: %w", err)
	}
	slices.SortFunc(all, func(a, b serverInfo) int {
		return cmp.Compare(a.Server.Name, b.Server.Name)
	})
	return all, nil
}

// expected returns the size of the cluster, 0 if no server knows it.
func expected(all []serverInfo) int {
	for _, s := range all {
		if store := s.Stats.JetStream; store != nil && store.Meta != nil {
			return store.Meta.Size
		}
	}
	return 0
}

// readProblems returns the problems that servers report about themselves and their copies of
// streams, by the server's name. Healthy servers are not in the result. count is the number of
// answers to wait for.
func readProblems(ctx context.Context, sys *nats.Conn, count int) (map[string][]string, error) {
	problems := map[string][]string{}
	answers := 0
	receive := func(data []byte) (enough bool, err error) {
		var health server.HealthStatus
		answer := server.ServerAPIResponse{Data: &health}
		if err := json.Unmarshal(data, &answer); err != nil {
			return false, fmt.Errorf("decode the health of a server: %w", err)
		}
		name := answer.Server.Name
		for _, e := range health.Errors {
			problems[name] = append(problems[name], e.Error)
		}
		if health.Error != "" {
			problems[name] = append(problems[name], health.Error)
		}
		answers++
		return answers == count, nil
	}
	if err := scatter(ctx, sys, pingHealth, []byte(`{"details":true}`), receive); err != nil {
		return nil, fmt.Errorf("request the health of the broker's servers: %w", err)
	}
	return problems, nil
}

// scatter sends a request to all servers and calls receive with each answer, until receive returns
// enough, no further answer comes within nextTimeout, or ctx ends. No answer at all is an error.
func scatter(
	ctx context.Context, nc *nats.Conn, subject string, request []byte,
	receive func(data []byte) (enough bool, err error),
) error {
	inbox := nc.NewInbox()
	sub, err := nc.SubscribeSync(inbox)
	if err != nil {
		return err
	}
	defer streams.Unsubscribe(sub)
	if err := nc.PublishRequest(subject, inbox, request); err != nil {
		return err
	}
	for wait := ctx; ; {
		msg, err := sub.NextMsgWithContext(wait)
		timedOut := errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil
		switch {
		case timedOut && wait != ctx:
			return nil // all servers that can answer have answered
		case errors.Is(err, nats.ErrNoResponders):
			return err
		case err != nil:
			return fmt.Errorf("no answer: %w", err)
		}
		enough, err := receive(msg.Data)
		if err != nil || enough {
			return err
		}
		var cancel context.CancelFunc
		wait, cancel = context.WithTimeout(ctx, nextTimeout)
		defer cancel() // one per server
	}
}
