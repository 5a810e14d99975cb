package control_test

import (
	"testing"

	"hubcloud/projections/projectionstest"
	"hubcloud/test/population"
)

// populate fills the directory with organizations that have existed for a while.
func populate(t testing.TB, w *projectionstest.Env, events int) {
	t.Helper()
	cfg := population.Config{Orgs: 20, Events: events, Seed: 1}
	if _, err := population.Write(t.Context(), w.Conns, cfg); err != nil {
		t.Fatal(err)
	}
}
