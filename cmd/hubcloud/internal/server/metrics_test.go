package server

import (
	"net"
	"reflect"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"hubcloud/streams/telemetry/telemetrytest"
)

// TestOperatorsPortIsPrivate: profiles and metrics ask nobody who they are, so they are on loopback
// unless told otherwise.
func TestOperatorsPortIsPrivate(t *testing.T) {
	t.Parallel()
	flag, _ := reflect.TypeFor[Config]().FieldByName("Admin")
	host, _, err := net.SplitHostPort(flag.Tag.Get("default"))
	if err != nil || !net.ParseIP(host).IsLoopback() {
		t.Errorf("--admin is %q, %v", flag.Tag.Get("default"), err)
	}
}

// TestBuildInfo tells what a process does.
func TestBuildInfo(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(newBuildInfo(Config{Roles: []string{roleAPI, roleBridge}}))
	if got := telemetrytest.Value(t, registry, "hubcloud_build_info", "roles", "api,bridge"); got != 1 {
		t.Errorf("it is %v", got)
	}
}
