package broker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"hubcloud/streams"
)

// OnStore runs a server on the store of the stopped durable server while use runs, which gets a
// connection to the account CLOUD. Nobody else can connect. Every write is synced.
func OnStore(
	ctx context.Context, store string, logger *slog.Logger, use func(nc *nats.Conn) error,
) error {
	const user = "repair"
	opts, err := commonOptions(fmt.Sprintf(
		"accounts { %s { jetstream: enabled, users: [{ user: %s, password: %s }] } }",
		streams.AccountCloud, user, user,
	), "127.0.0.1:0", store, 0, 0)
	if err != nil {
		return err
	}
	opts.DontListen = true
	if opts.JetStreamMaxStore, err = storageLimit(store); err != nil {
		return err
	}
	started, err := server.NewServer(opts)
	if err != nil {
		return err
	}
	log := newServerLogger(logger, newFaults(), func(string) {})
	started.SetLoggerV2(log, false, false, false)
	started.Start()
	defer started.WaitForShutdown()
	defer started.Shutdown()
	if err := awaitReady(ctx, started, log.fatal); err != nil {
		return err
	}
	nc, err := nats.Connect(
		"", nats.InProcessServer(started), nats.UserInfo(user, user), nats.Timeout(time.Minute),
	)
	if err != nil {
		return err
	}
	defer nc.Close()
	if !started.JetStreamEnabled() {
		return errors.New("the server does not open its store")
	}
	return use(nc)
}
