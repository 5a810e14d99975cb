package server

import (
	"net"
	"reflect"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"hubcloud/streams/streamstest"
)

// Profiles and metrics need no authentication, so the admin port must be on loopback by default.
func TestAdminPortIsPrivate(t *testing.T) {
	t.Parallel()
	flag, _ := reflect.TypeFor[Config]().FieldByName("Admin")
	host, _, err := net.SplitHostPort(flag.Tag.Get("default"))
	if err != nil || !net.ParseIP(host).IsLoopback() {
		t.Errorf(
			"the default of --admin is %q, %v; want a loopback address", flag.Tag.Get("default"),
			err,
		)
	}
}

func TestBuildInfo(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(newBuildInfo(Config{Roles: []string{roleAPI, roleBridge}}))
	got := streamstest.MetricValue(t, registry, "hubcloud_build_info", "roles", "api,bridge")
	if got != 1 {
		t.Errorf("hubcloud_build_info{roles=\"api,bridge\"} is %v, want 1", got)
	}
}
