package projector

import (
	"context"
	_ "embed"
	"strings"

	"github.com/jackc/pgx/v5"

	"hubcloud/domain"
	"hubcloud/projections/devicestate"
	"hubcloud/projections/schema"
	"hubcloud/streams/journal"
)

var (
	//go:embed sql/delete_reported_parts.sql
	deleteReportedParts string
	//go:embed sql/lose_reported.sql
	loseReported string
	//go:embed sql/reset_reported.sql
	resetReported string
)

// reportedStates are the states of hubs in memory.
type reportedStates struct {
	// limit is about how many channels are kept.
	limit int
	// known means that the tables may have rows.
	known    bool
	hubs     map[domain.HubID]*reportedHub
	channels int
	// changed are the hubs with changes that are not written.
	changed map[domain.HubID]*reportedHub
}

// reportedHub is the state of a hub in memory.
type reportedHub struct {
	state *devicestate.Hub
	// written is the sequence of the last entry that the rows have, and channels the number of
	// channels that were counted.
	written  uint64
	channels int
}

// load makes sure that the states of all hubs of a batch are in memory. While there are too many
// channels, it first removes other hubs' states.
func (s *reportedStates) load(ctx context.Context, conn *pgx.Conn, batch []journalEntry) error {
	if s.hubs == nil {
		s.hubs = map[domain.HubID]*reportedHub{}
	}
	s.changed = map[domain.HubID]*reportedHub{}
	var missing []string
	wanted := map[domain.HubID]bool{}
	for i := range batch {
		for _, link := range batch[i].Links {
			if wanted[link.Hub] {
				continue
			}
			wanted[link.Hub] = true
			if s.hubs[link.Hub] == nil {
				missing = append(missing, strings.Clone(string(link.Hub))) // a part of a longer text
			}
		}
	}
	for id := range s.hubs {
		if s.channels <= s.limit {
			break
		}
		if !wanted[id] {
			s.remove(id)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	loaded, err := loadReported(ctx, conn, missing)
	if err != nil {
		return err
	}
	for _, id := range missing {
		hub := &reportedHub{state: new(devicestate.Hub)}
		if state := loaded[domain.HubID(id)]; state != nil {
			hub.state, hub.written = state, state.Seq
		}
		s.hubs[domain.HubID(id)] = hub
	}
	return nil
}

func (s *reportedStates) remove(id domain.HubID) {
	if hub := s.hubs[id]; hub != nil {
		s.channels -= hub.channels
		delete(s.hubs, id)
	}
}

// lose puts all hubs in memory in doubt, because entries have expired unread. It reports whether
// those in the tables must be too: not if nothing was read before.
func (s *reportedStates) lose() bool {
	if !s.known && len(s.hubs) == 0 {
		return false
	}
	for _, hub := range s.hubs {
		hub.state.Lose(hub.state.Seq)
	}
	return true
}

// addChanges adds the statements that write the changed states.
func (s *reportedStates) addChanges(all *statements, journal int, m *metrics) {
	s.known = true
	var (
		reshaped []string
		hubs     []schema.ReportedHubRow
		devices  []schema.ReportedDeviceRow
		channels []schema.ReportedChannelRow
	)
	for id, hub := range s.changed {
		written, count := hub.written, 0
		if hub.state.Reshaped > written {
			reshaped, written = append(reshaped, string(id)), 0
		}
		hubs = append(hubs, schema.ReportedHubRow{ID: id, Journal: journal, Hub: hub.state})
		for _, device := range hub.state.Devices {
			count += len(device.Channels)
			if device.Seq > written {
				devices = append(devices, schema.ReportedDeviceRow{HubID: id, Device: device})
			}
			for _, channel := range device.Channels {
				if channel.Seq > written {
					channels = append(channels, schema.ReportedChannelRow{
						HubID: id, DeviceID: device.ID, Channel: channel,
					})
				}
			}
		}
		s.channels += count - hub.channels
		hub.channels, hub.written = count, hub.state.Seq
	}
	all.add(changeAny(
		"delete the parts of hubs", deleteReportedParts, reshaped,
		column(func(id string) string { return id }),
	))
	all.add(schema.ReportedHubs.Insert(hubs))
	all.add(schema.ReportedDevices.Insert(devices))
	all.add(schema.ReportedChannels.Insert(channels))
	m.setReported(journal, len(s.hubs), s.channels)
	m.rows.Add(float64(len(hubs) + len(devices) + len(channels)))
}

// entryOf returns a record in the form that is folded.
func entryOf(r *journal.Record) devicestate.Entry {
	e := devicestate.Entry{Seq: r.Seq, Time: r.Time, Number: r.Through, EpochID: r.EpochID}
	switch r.Kind {
	case journal.KindHubEvent, journal.KindCloudEvent:
		e.Event = r.Payload
	case journal.KindState:
		e.State = r.Payload
	}
	return e
}
