package doctor

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"hubcloud/streams"
	"hubcloud/streams/broker"
	"hubcloud/streams/jsapi"
)

// judgeHoles reports lost messages of the directory and the journals: from the broker, or from the
// files of the embedded one while it does not run.
func judgeHoles(ctx context.Context, t *target, f *findings) {
	for _, stream := range lastingStreams(t) {
		holes, err := holesOf(ctx, t, stream)
		if errors.Is(err, jsapi.ErrNoStream) {
			continue // reported elsewhere
		}
		if err != nil {
			f.unknown(fmt.Sprintf("whether messages of %s are lost is unknown: ", stream), err)
			continue
		}
		for _, hole := range holes {
			if stream == streams.DirectoryStream {
				f.add(
					Wrong, fmt.Sprintf("events of the directory (%s) are lost: %s", stream, hole),
					"no service starts on that: put them back with `hubcloud restore --directory`, from a "+
						"backup or another server's copy, or accept the loss (--accept-loss); check the "+
						"disk (dmesg)",
				)
				continue
			}
			f.add(
				Warning, fmt.Sprintf("commits of journal %s are lost: %s", stream, hole),
				"check the disk (dmesg): events that hubs sent then are lost where the hubs' own streams "+
					"do not have them; readers get hub.events_skipped; nothing else is to be done, and "+
					"the finding ends once these commits have expired",
			)
		}
	}
}

// lastingStreams returns the directory and the journals, as far as they can be found.
func lastingStreams(t *target) []string {
	all := []string{streams.DirectoryStream}
	journals := strings.TrimSuffix(streams.JournalStream(0), "0")
	isJournal := func(name string) bool {
		return strings.HasPrefix(name, journals) && name != streams.JournalIndexStream
	}
	if cloud, err := t.cloud(); err == nil {
		for _, s := range cloud {
			if isJournal(s.Name) {
				all = append(all, s.Name)
			}
		}
		return all
	}
	folders, _ := filepath.Glob(filepath.Join(t.DataDir, "nats", "durable", "jetstream", "*", "streams", "*"))
	for _, folder := range folders {
		if name := filepath.Base(folder); isJournal(name) {
			all = append(all, name)
		}
	}
	return all
}

func holesOf(ctx context.Context, t *target, stream string) (holes []jsapi.Hole, err error) {
	if conns, err := t.broker(); err == nil {
		return jsapi.New(conns.Cloud).Holes(
			ctx, stream, stream != streams.DirectoryStream,
		)
	}
	if t.DataDir == "" || t.Started != nil && t.Started.ExternalBroker {
		return nil, nil // the component broker says that it cannot be reached
	}
	found, err := broker.Holes(t.DataDir, stream)
	for _, hole := range found {
		holes = append(holes, hole.Hole)
	}
	return holes, err
}
