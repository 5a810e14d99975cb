package backup

import (
	"slices"
	"testing"
	"time"

	"hubcloud/streams"
	"hubcloud/streams/jsapi"
	"hubcloud/streams/streamstest"
)

// TestCluster restores a backup of one server to a cluster with three replicas of each stream,
// writes a backup of the cluster while one server is down, and restores that backup to one server.
func TestCluster(t *testing.T) {
	t.Parallel()
	from := newTestInstallation(t, 4, 20)
	dir, m := from.writeBackup(true)
	cluster, conns := streamstest.NewConnectedCluster(t)
	cfg := restoreConfig(dir)
	cfg.Replicas = 3
	streamstest.Must(t, Restore(t.Context(), conns, m, cfg))
	want := messages(t, from.Conns.Cloud, streams.DirectoryStream)
	got := messages(t, conns.Cloud, streams.DirectoryStream)
	if len(got) < len(want) || !slices.Equal(got[:len(want)], want) {
		t.Errorf("directory of the cluster: got %d events, want the %d of before first",
			len(got), len(want))
	}
	hub := from.hubs[2]
	for _, stream := range []string{
		streams.DirectoryStream, "KV_presence", streams.JournalStream(0),
	} {
		info, err := jsapi.New(conns.Cloud).Info(t.Context(), stream)
		if err != nil || info.Config.Replicas != 3 {
			t.Errorf("replicas of stream %s: got %+v, error %v, want 3", stream, info, err)
		}
	}

	cluster.Stop(2)
	var again string
	// For some seconds the streams that the stopped server led have no leader.
	if !streamstest.Poll(2*time.Minute, func() bool {
		again = t.TempDir()
		_, err := Write(t.Context(), conns, Config{Dir: again, Format: 1, HubLogs: true, Installation: "x"})
		if err != nil {
			t.Logf("Write: %v", err)
		}
		return err == nil
	}) {
		t.Fatal("Write fails with one of three servers down")
	}
	to := restoreBackup(t, again)
	got = messages(t, to.Conns.Cloud, streams.DirectoryStream)
	if len(got) < len(want) || !slices.Equal(got[:len(want)], want) {
		t.Errorf("directory of the cluster's backup: got %d events, want the %d of before first",
			len(got), len(want))
	}
	page, err := to.HubLogs.Page(t.Context(), hub, "", 100)
	if err != nil || len(page.Events) != 20 {
		t.Errorf("events of the hub's log: got %d, error %v, want 20", len(page.Events), err)
	}
}
