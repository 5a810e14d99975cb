package upgrade

import (
	"context"
	"encoding/json"
	"flag"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hubcloud/hubbridge/kit/hub"
	"hubcloud/hubbridge/kit/virtualhub"
	"hubcloud/streams/streamstest"
	"hubcloud/test/harness"
	"hubcloud/test/natscluster"
)

var makeFlag = flag.String(
	"upgrade.make", "", "keep a data directory and a cluster's streams of this release in testdata",
)

// retention keeps the events of what is kept for ten years. It is part of the stored streams, so
// they are made with it.
const retention = "--event-retention=87600h"

// shards are the shards of the kept cluster.
const shards = "2"

// TestMake makes what the binary under test writes, which must be the build of a release.
func TestMake(t *testing.T) {
	if *makeFlag == "" {
		t.Skip("NOT TRIED: only with -upgrade.make")
	}
	version, _, _ := harness.RunBinary(t, "version")
	if !strings.HasPrefix(version, "hubcloud "+*makeFlag+"\n") {
		t.Fatalf("the binary is not the build of %s:\n%s", *makeFlag, version)
	}
	t.Run("one node", func(t *testing.T) {
		service := harness.Start(t, retention, "--disk-reserve=0")
		use(t, service, *makeFlag)
		service.Stop()
		keep(
			t, *makeFlag, service.Dir, "--exclude=./postgres", "--exclude=./LOCK",
			"--exclude=./outbox", "--exclude=./endpoints.json", "--exclude=./service.json",
			"--exclude=./postgres.json", ".",
		)
	})
	t.Run("cluster", func(t *testing.T) {
		dir := t.TempDir()
		broker := natscluster.StartIn(t, dir, shards)
		broker.Arguments = append(broker.Arguments, retention)
		service := broker.Join()
		use(t, service, *makeFlag+ofCluster)
		service.Stop()
		for _, node := range broker.Nodes {
			node.Stop()
		}
		keep(t, *makeFlag+ofCluster, dir, "store", "ca", "nats-credentials.json")
	})
}

// use makes an organization with a site and two hubs that have sent events, and keeps what a client
// sees of it in testdata.
func use(t *testing.T, service *harness.Service, name string) {
	t.Helper()
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
			tenant.Get("/hubs/"+hub).JSON(t, &answer)
			return answer.Connection.Status == "offline"
		})
	}
	manifest, err := json.MarshalIndent(look(t, service, tenant.Key, hubs), "", "  ")
	harness.Must(t, err)
	path := filepath.Join("testdata", name+".json")
	harness.Must(t, os.WriteFile(path, append(manifest, '\n'), 0o644))
}

// keep packs files of a folder, arguments of tar, into testdata.
func keep(t *testing.T, name, dir string, files ...string) {
	t.Helper()
	out, err := exec.Command("tar", append([]string{
		"-czf", filepath.Join("testdata", name+".tar.gz"), "-C", dir, "--owner=0", "--group=0",
	}, files...)...).CombinedOutput()
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
		Config: hub.Config{
			EnrollURL: service.Public(), Serial: factory.Serial, Secret: factory.Secret,
			Logger: slog.New(slog.DiscardHandler),
		},
		Quiet: true,
	})
	harness.Must(t, err)
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
	tenant.Patch(path, map[string]string{"name": "Hall"})
	for i := range 20 {
		tenant.Command(path+"/devices/1/commands", map[string]any{"key": "lock", "value": i%2 == 0})
		streamstest.Eventually(t, "the outcome of the command", func() bool {
			var device struct{ Channels []struct{ Status string } }
			tenant.Get(path+"/devices/1").JSON(t, &device)
			return device.Channels[0].Status == "synchronized"
		})
	}
	harness.Stored(t, hub)
	stop()
	<-ended
	harness.Must(t, hub.Close())
}
