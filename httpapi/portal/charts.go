package portal

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"hubcloud/domain"
)

const (
	// chartEvents is about the most events that drawCharts reads: half of them from the beginning
	// of the period, then, if the log has more, the same number from each of chartParts parts of
	// the period.
	chartEvents = 20000
	chartParts  = 10
	// chartPage is how many events are read at once.
	chartPage = 500
)

// deviceCharts has the charts of a device, in the order of its channels.
type deviceCharts struct {
	Charts []chart
	// Complete is false if the log has more events than were read. The charts are then drawn from
	// samples of the whole period.
	Complete bool
}

// channelID identifies a channel of a device.
type channelID struct {
	key      string
	endpoint int64
}

// drawCharts draws what the numeric and boolean channels of a device reported in a period, which is
// within the retention and ends now or earlier. A numeric channel without reports has no chart; a
// boolean one had its value since it was last reported.
func (p *Portal) drawCharts(
	ctx context.Context, device hubDevice, from, to time.Time,
) (deviceCharts, error) {
	charts := map[channelID]*chart{}
	for _, c := range device.Channels {
		if _, ok := numberIn(json.RawMessage(c.Value)); ok {
			charts[channelID{c.Key, c.Endpoint}] = newChart(c, from, to)
		}
	}
	if len(charts) == 0 {
		return deviceCharts{Complete: true}, nil
	}
	deviceField := fmt.Appendf(nil, `"device_id":%d,`, device.ID)
	complete, err := p.sample(ctx, device.Hub, from, to.Sub(from), func(encoded domain.EncodedEvent) {
		if !bytes.Contains(encoded.Envelope, deviceField) || encoded.StoredNanos > to.UnixNano() {
			return // decode only the events of this device
		}
		if event, ok := decode(encoded); ok && event.Type == "channel.observed" &&
			event.isOf(device.ID) {
			addReport(charts, event, time.Unix(0, encoded.StoredNanos))
		}
	})
	if err != nil {
		return deviceCharts{}, err
	}
	drawn := deviceCharts{Complete: complete}
	for _, c := range device.Channels {
		chart, ok := charts[channelID{c.Key, c.Endpoint}]
		if !ok {
			continue
		}
		n, ok := numberIn(json.RawMessage(c.Value))
		if ok && !complete && c.ObservedAt.After(from) && !c.ObservedAt.After(to) {
			chart.addReport(c.ObservedAt, to, n) // samples end before the period
		}
		if ok && chart.Boolean && chart.Count == 0 && !c.ObservedAt.IsZero() && !c.ObservedAt.After(to) {
			since := from
			if c.ObservedAt.After(from) { // reported with the device, not as an event
				since = c.ObservedAt
			}
			chart.add(since, n)
			chart.Count = 0
			chart.draw()
			drawn.Charts = append(drawn.Charts, *chart)
			continue
		}
		if chart.Count > 0 {
			chart.draw()
			drawn.Charts = append(drawn.Charts, *chart)
		}
	}
	return drawn, nil
}

// addReport adds the value of a channel.observed event, which was stored at a time, to the chart of
// its channel.
func addReport(charts map[channelID]*chart, event logEvent, stored time.Time) {
	var report channelEvent
	if json.Unmarshal(event.Data, &report) != nil {
		return
	}
	if n, ok := numberIn(report.Value); ok {
		if chart := charts[channelID{report.Key, report.Endpoint}]; chart != nil {
			at := event.Time
			if event.ClockTrusted != nil && !*event.ClockTrusted {
				at = stored
			}
			chart.addReport(at, stored, n)
		}
	}
}

// numberIn returns the number that value is the JSON of; 1 for true and 0 for false.
func numberIn(value json.RawMessage) (n float64, ok bool) {
	switch string(value) {
	case "true":
		return 1, true
	case "false":
		return 0, true
	}
	ok = string(value) != "null" && json.Unmarshal(value, &n) == nil
	return n, ok
}

// sample calls use with the events of a log from a time on, each once and in order. It returns
// false if the log has more than chartEvents events in the period: then it leaves out the end of
// each part of the period.
func (p *Portal) sample(
	ctx context.Context, hub domain.HubID, from time.Time, period time.Duration,
	use func(domain.EncodedEvent),
) (complete bool, err error) {
	after, err := p.Events.At(ctx, hub, from)
	if err != nil {
		return false, err
	}
	const contiguous = chartEvents / 2
	last, more, err := p.readEvents(ctx, hub, after, contiguous, 0, use)
	if err != nil || !more {
		return true, err
	}
	for part := range chartParts {
		start := from.Add(period * time.Duration(part) / chartParts)
		if after, err = p.Events.At(ctx, hub, start); err != nil {
			return false, err
		}
		last, more, err = p.readEvents(
			ctx, hub, after, (chartEvents-contiguous)/chartParts, last, use,
		)
		if err != nil || !more {
			return false, err
		}
	}
	return false, nil
}

// readEvents reads about limit events after a cursor and calls use with those whose sequence number
// is larger than last. It returns the new last, and whether the log has more events. If the cursor
// has expired it reads from the oldest event.
func (p *Portal) readEvents(
	ctx context.Context, hub domain.HubID, after string, limit int, last uint64,
	use func(domain.EncodedEvent),
) (newLast uint64, more bool, err error) {
	for read := 0; read < limit; {
		page, err := p.Events.Page(ctx, hub, after, chartPage)
		if codeOf(err) == domain.CodeCursorExpired && after != "" && read == 0 {
			after = ""
			continue
		}
		if err != nil {
			return last, false, err
		}
		for _, event := range page.Events {
			if event.Seq > last {
				last = event.Seq
				use(event)
			}
		}
		if !page.HasMore {
			return last, false, nil
		}
		after = page.Next
		read += len(page.Events)
	}
	return last, true, nil
}
