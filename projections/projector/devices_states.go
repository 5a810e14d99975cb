package projector

import (
	"cmp"
	"context"
	_ "embed"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"hubcloud/domain"
	"hubcloud/projections/devicestate"
	"hubcloud/projections/schema"
	"hubcloud/streams/journal"
	"hubcloud/streams/shares"
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
	// changed are the hubs with changes that are not written, which wait for their turn.
	changed map[domain.HubID]*reportedHub
	order   *shares.Turns
	// reached is the last entry of which everything is written, and folded are the later ones.
	reached Header
	folded  []Header
}

// reportedHub is the state of a hub in memory.
type reportedHub struct {
	state *devicestate.Hub
	org   string
	// written is the sequence of the last entry that the rows have, since the sequence in the
	// journal of the first entry that they lack, and counted what was counted in them.
	written, since uint64
	counted        counts
	// urgent reports that a device reports an alarm in what the rows lack.
	urgent bool
}

// counts are how many channels a hub has, how many of them may need attention, and how many devices
// are in doubt.
type counts struct {
	channels, suspects, doubtful int
	certain                      bool
}

func newReportedStates(limit int, at Checkpoint, order *shares.Turns) reportedStates {
	return reportedStates{
		limit: limit, known: at.Sequence > 0, hubs: map[domain.HubID]*reportedHub{},
		changed: map[domain.HubID]*reportedHub{}, order: order,
		reached: Header{Sequence: at.Sequence, ID: at.EventID},
	}
}

// load makes sure that the states of all hubs of a batch are in memory. While there are too many
// channels, it first removes other hubs' states that are written.
func (s *reportedStates) load(ctx context.Context, conn *pgx.Conn, batch []journalEntry) error {
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
		if !wanted[id] && s.changed[id] == nil {
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
			hub.counted = countsOf(state)
			hub.counted.channels = 0 // they are counted once they are written
		}
		s.hubs[domain.HubID(id)] = hub
	}
	return nil
}

func (s *reportedStates) remove(id domain.HubID) {
	if hub := s.hubs[id]; hub != nil {
		s.channels -= hub.counted.channels
		delete(s.hubs, id)
		delete(s.changed, id)
	}
}

// change records that an entry of the journal has changed a hub, or may have.
func (s *reportedStates) change(id domain.HubID, hub *reportedHub, seq uint64, urgent bool) {
	hub.urgent = hub.urgent || urgent
	if s.changed[id] == nil {
		id = domain.HubID(strings.Clone(string(id))) // a part of a longer text
		s.changed[id], hub.since = hub, seq
	} else if !urgent {
		return
	}
	s.order.Add(shares.Spender{Org: hub.org, ID: string(id)}, urgent)
}

func countsOf(h *devicestate.Hub) (c counts) {
	c.certain, c.channels = h.Certain(), h.ChannelCount()
	for _, device := range h.Devices {
		if !device.Certain() {
			c.doubtful++
		}
		for _, channel := range device.Channels {
			if channel.IsSuspect() {
				c.suspects++
			}
		}
	}
	return c
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

// reportedRows are rows that are written together.
type reportedRows struct {
	reshaped []string
	hubs     []schema.ReportedHubRow
	devices  []schema.ReportedDeviceRow
	channels []schema.ReportedChannelRow
	// urgent are the hubs of which a device reports an alarm, and alarming the others of which
	// something may need attention, or does no longer.
	urgent, alarming []string
}

func (r *reportedRows) count() int { return len(r.hubs) + len(r.devices) + len(r.channels) }

// addChanges adds the statements that write the states of the hubs whose turn it is: as many hubs
// as it takes for a number of rows, and each as a whole.
func (s *reportedStates) addChanges(all *statements, journal, most int, m *metrics) (r reportedRows) {
	s.known = true
	for r.count() < most {
		turn, ok := s.order.Next()
		if !ok {
			break
		}
		id := domain.HubID(turn.ID)
		hub := s.changed[id]
		if hub == nil {
			continue // it was removed, or had its turn as another organization's
		}
		delete(s.changed, id)
		before := r.count()
		s.addHub(&r, id, journal, hub)
		s.order.Spend(turn, int64(r.count()-before))
	}
	s.order.HeldBackWaiting()
	all.add(changeAny(
		"delete the parts of hubs", deleteReportedParts, r.reshaped,
		column(func(id string) string { return id }),
	))
	all.add(schema.ReportedHubs.Insert(r.hubs))
	all.add(schema.ReportedDevices.Insert(r.devices))
	all.add(schema.ReportedChannels.Insert(r.channels))
	m.setReported(journal, len(s.hubs), s.channels)
	m.rows.Add(float64(r.count()))
	return r
}

// addHub adds the rows of a hub that have changed.
func (s *reportedStates) addHub(r *reportedRows, id domain.HubID, journal int, hub *reportedHub) {
	written, alarming := hub.written, false
	if hub.state.Reshaped > written {
		r.reshaped, written = append(r.reshaped, string(id)), 0
	}
	r.hubs = append(r.hubs, schema.ReportedHubRow{ID: id, Journal: journal, Hub: hub.state})
	for _, device := range hub.state.Devices {
		if device.Seq > written {
			r.devices = append(r.devices, schema.ReportedDeviceRow{HubID: id, Device: device})
		}
		for _, channel := range device.Channels {
			if channel.Seq > written {
				r.channels = append(r.channels, schema.ReportedChannelRow{
					HubID: id, DeviceID: device.ID, Channel: channel,
				})
				alarming = alarming || channel.IsSuspect()
			}
		}
	}
	former, counted := hub.counted, countsOf(hub.state)
	hub.counted, hub.written = counted, hub.state.Seq
	s.channels += counted.channels - former.channels
	former.channels = counted.channels
	switch {
	case hub.urgent:
		r.urgent, hub.urgent = append(r.urgent, string(id)), false
	case alarming, counted != former:
		r.alarming = append(r.alarming, string(id))
	}
}

// reach returns the last entry of which everything is written.
func (s *reportedStates) reach() Header {
	missing := ^uint64(0)
	for _, hub := range s.changed {
		missing = min(missing, hub.since)
	}
	i, _ := slices.BinarySearchFunc(s.folded, missing, func(h Header, seq uint64) int {
		return cmp.Compare(h.Sequence, seq)
	})
	if i > 0 {
		s.reached = s.folded[i-1]
		s.folded = slices.Delete(s.folded, 0, i)
	}
	return s.reached
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
