//go:build ignore

// Command mercure runs the Mercure library as a server without Caddy, with its history in a Bolt database.
// install.sh builds it within a clone of Mercure.
package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	_ "net/http/pprof"
	"os"

	"github.com/dunglas/mercure"
)

func main() {
	if len(os.Args) != 5 {
		fmt.Fprintln(os.Stderr, "usage: mercure ADDRESS PROFILES DATABASE SECRET")
		os.Exit(2)
	}
	if err := serve(os.Args[1], os.Args[2], os.Args[3], os.Args[4]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func serve(address, profiles, database, secret string) error {
	go func() { slog.Error("profiles", "error", http.ListenAndServe(profiles, nil)) }()
	logger := slog.New(slog.DiscardHandler)
	history, err := mercure.NewBoltTransport(
		mercure.NewSubscriberList(mercure.DefaultSubscriberListCacheSize), logger, database, "", 0,
		mercure.BoltDefaultCleanupFrequency,
	)
	if err != nil {
		return err
	}
	hub, err := mercure.NewHub(
		context.Background(), mercure.WithTransport(history), mercure.WithLogger(logger),
		mercure.WithPublisherJWT([]byte(secret), "HS256"), mercure.WithAnonymous(),
		mercure.WithSubscriberJWT([]byte(secret), "HS256"),
	)
	if err != nil {
		return err
	}
	return http.ListenAndServe(address, hub)
}
