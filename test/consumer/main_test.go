package consumer

import (
	"context"
	"net/http"
	"testing"
	"time"

	"hubcloud/httpapi/client"
	"hubcloud/test/harness"
)

func TestMain(m *testing.M) { harness.Main(m, 0) }

// TestConsumers runs what needs nothing but a service on one of them.
func TestConsumers(t *testing.T) {
	t.Parallel()
	target := harness.NewTarget(t)
	t.Run("lists", func(t *testing.T) { lists(t, target.For(t)) }) // of a new installation
	for name, run := range map[string]func(*testing.T, *harness.Target){
		"client": everyRoute, "command line": commandLine, "profiles": profiles,
		"forward command": forwardCommand,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(t, target.For(t))
		})
	}
}

// clientOf returns a client with the tenant's key that checks every answer against openapi.yaml.
func clientOf(t *testing.T, tenant *harness.Tenant, retry client.Retry) *client.Client {
	t.Helper()
	transport := http.DefaultTransport.(*http.Transport).Clone()
	c, err := client.New(client.Config{
		BaseURL: tenant.Base, APIKey: tenant.Key,
		HTTPClient: &http.Client{Transport: harness.Checked(t, transport)}, Retry: retry,
	})
	harness.Must(t, err)
	t.Cleanup(transport.CloseIdleConnections)
	return c
}

// soon returns a context with a short deadline.
func soon(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// check fails the test if there is an error.
func check[T any](t *testing.T) func(T, error) T {
	return func(result T, err error) T {
		t.Helper()
		harness.Must(t, err)
		return result
	}
}
