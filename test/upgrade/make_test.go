package upgrade

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"hubcloud/hubbridge/kit/virtualhub"
	"hubcloud/streams/streamstest"
	"hubcloud/test/harness"
)

var makeFlag = flag.Int("upgrade.make", 0, "keep a data directory of this format in testdata")

// retention keeps the events of the kept directories for ten years. It is part of the stored
// streams, so each directory is made with it.
const retention = "--event-retention=87600h"

// TestMake makes a directory of the format that the binary under test writes.
func TestMake(t *testing.T) {
	if *makeFlag == 0 {
		t.Skip("NOT TRIED: only with -upgrade.make")
	}
	service := harness.Start(t, retention, "--disk-reserve=0")
	tenant := harness.NewTenant(t, service, "Mill")
	tenant.NewSite("Quay")
	var hubs []string
	for _, factory := range service.Inventory(2) {
		hubs = append(hubs, factory.HubID)
		useHub(t, service, tenant, factory)
	}
	for _, hub := range hubs {
		streamstest.Eventually(t, "the hub is offline", func() bool {
			var answer struct{ Connection struct{ Status string } }
			tenant.Must(http.MethodGet, "/hubs/"+hub, nil, http.StatusOK).JSON(t, &answer)
			return answer.Connection.Status == "offline"
		})
	}
	name := filepath.Join("testdata", fmt.Sprintf("format-%d", *makeFlag))
	manifest, err := json.MarshalIndent(look(t, service, tenant.Key, hubs), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name+".json", append(manifest, '\n'), 0o644); err != nil {
		t.Fatal(err)
	}
	service.Stop()
	out, err := exec.Command(
		"tar", "-czf", name+".tar.gz", "-C", service.Dir, "--owner=0", "--group=0",
		"--exclude=./postgres", "--exclude=./LOCK", "--exclude=./outbox",
		"--exclude=./endpoints.json", "--exclude=./service.json", "--exclude=./postgres.json", ".",
	).CombinedOutput()
	if err != nil {
		t.Fatalf("tar: %v: %s", err, out)
	}
}

// useHub connects a hub, adds it, sends it commands, and disconnects it.
func useHub(
	t *testing.T, service *harness.Service, tenant *harness.Tenant, factory harness.FactoryHub,
) {
	t.Helper()
	hub, err := virtualhub.New(virtualhub.Config{
		EnrollURL: service.Public(), Serial: factory.Serial, Secret: factory.Secret, Quiet: true,
		Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(t.Context(), 2*time.Minute)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- hub.Run(ctx) }()
	streamstest.Eventually(t, "the hub can be added", func() bool {
		answer, err := tenant.Try(
			http.MethodPost, "/hubs",
			map[string]string{"serial": factory.Serial, "site_id": tenant.Site},
		)
		return err == nil && answer.Status == http.StatusOK
	})
	path := "/hubs/" + factory.HubID
	tenant.Must(http.MethodPatch, path, map[string]string{"name": "Hall"}, http.StatusOK)
	for i := range 20 {
		tenant.Must(
			http.MethodPost, path+"/devices/1/commands",
			map[string]any{"key": "lock", "value": i%2 == 0}, http.StatusAccepted,
		)
		streamstest.Eventually(t, "the outcome of the command", func() bool {
			var device struct{ Channels []struct{ Status string } }
			tenant.Must(http.MethodGet, path+"/devices/1", nil, http.StatusOK).JSON(t, &device)
			return device.Channels[0].Status == "synchronized"
		})
	}
	harness.Stored(t, hub)
	stop()
	<-ended
	if err := hub.Close(); err != nil {
		t.Fatal(err)
	}
}
