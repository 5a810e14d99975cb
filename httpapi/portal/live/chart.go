package live

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"hubcloud/domain"
)

const (
	// chartEvents is the most events that one chart's page reads, chartPage how many at once. A log
	// that has more in the time is read in chartParts parts of the time, of each as many events as
	// there are reads left for it: the beginning of each part is drawn, and its end is not.
	chartEvents = 20000
	chartPage   = 500
	chartParts  = 10
	// chartWidth and chartHeight are the units that charts are drawn in, chartColumns how finely.
	chartWidth, chartHeight = 600.0, 120.0
	chartColumns            = 300
)

// Chart is what a numeric channel reported over a time.
type Chart struct {
	Key      string
	Endpoint int64
	Label    string
	// Path is the line as SVG draws it, in a box of 600 by 120; First and Last are what it begins
	// and ends with, in words, Low and High its bounds.
	Path       string
	Low, High  string
	Last       string
	Count      int
	From, To   time.Time
	highs      []float64
	lows       []float64
	lasts      []float64
	unit       string
	minV, maxV float64
}

// Charts are those of a device, in the order of its channels.
type Charts struct {
	Charts []Chart
	// Whole is false when the log holds more events in that time than are read for a chart: then
	// they are drawn of samples from all over the time.
	Whole bool
}

// channelAt is a channel within a device.
type channelAt struct {
	key      string
	endpoint int64
}

// ChartsOf draws what a device's numeric channels reported in the last while. A channel that
// reported nothing has no chart.
func (l *Live) ChartsOf(ctx context.Context, device Device, last time.Duration) (Charts, error) {
	now := l.Now()
	last = min(last, l.Retention)
	from := now.Add(-last)
	all := Charts{Whole: true}
	at := map[channelAt]int{}
	for _, c := range device.Channels {
		var n float64
		if json.Unmarshal([]byte(c.Value), &n) == nil && c.Value != "null" {
			at[channelAt{c.Key, c.Endpoint}] = len(all.Charts)
			all.Charts = append(all.Charts, newChart(c, from, now))
		}
	}
	if len(all.Charts) == 0 {
		return all, nil
	}
	mine := fmt.Appendf(nil, `"device_id":%d,`, device.ID)
	err := l.sample(ctx, device.Hub, from, last, &all.Whole, func(encoded domain.EncodedEvent) {
		if !bytes.Contains(encoded.Envelope, mine) {
			return // most are of other devices: they need no decoding
		}
		if event, ok := decode(encoded); ok && event.Type == "channel.observed" &&
			event.DeviceID != nil &&
			*event.DeviceID == device.ID {
			all.take(at, event)
		}
	})
	if err != nil {
		return all, err
	}
	if !all.Whole { // samples end before now: what the device says now is known all the same
		for _, c := range device.Channels {
			var n float64
			if i, ok := at[channelAt{c.Key, c.Endpoint}]; ok &&
				json.Unmarshal([]byte(c.Value), &n) == nil &&
				c.ObservedAt.After(from) {
				all.Charts[i].add(c.ObservedAt, n)
			}
		}
	}
	drawn := all.Charts[:0]
	for _, c := range all.Charts {
		if c.Count > 0 {
			c.draw()
			drawn = append(drawn, c)
		}
	}
	all.Charts = drawn
	return all, nil
}

// sample hands over the events of a log from a time on, each once and in order. whole becomes false
// when there are more than chartEvents: then parts of the time are passed over, evenly.
func (l *Live) sample(
	ctx context.Context, hub domain.HubID, from time.Time, last time.Duration, whole *bool,
	take func(domain.EncodedEvent),
) error {
	after, err := l.Events.At(ctx, hub, from)
	if err != nil {
		return err
	}
	// Straight on, as far as that goes: most logs end before.
	straight := chartEvents / 2
	seen, more, err := l.readOn(ctx, hub, after, straight, 0, take)
	if err != nil || !more {
		return err
	}
	*whole = false
	for part := range chartParts {
		if after, err = l.Events.At(ctx, hub, from.Add(last*time.Duration(part)/chartParts)); err != nil {
			return err
		}
		if seen, more, err = l.readOn(ctx, hub, after, (chartEvents-straight)/chartParts, seen, take); err != nil ||
			!more {
			return err
		}
	}
	return nil
}

// readOn hands over at most limit events after a cursor, those behind the sequence number seen, and
// gives the last one's; more says that there are more. Where the log has lost its beginning
// meanwhile it begins with what is left.
func (l *Live) readOn(
	ctx context.Context, hub domain.HubID, after string, limit int, seen uint64,
	take func(domain.EncodedEvent),
) (uint64, bool, error) {
	for read := 0; read < limit; {
		page, err := l.Events.Page(ctx, hub, after, chartPage)
		if codeOf(err) == domain.CodeCursorExpired && after != "" && read == 0 {
			after = ""
			continue
		}
		if err != nil {
			return seen, false, err
		}
		for _, encoded := range page.Events {
			if encoded.Seq > seen {
				seen = encoded.Seq
				take(encoded)
			}
		}
		if !page.HasMore {
			return seen, false, nil
		}
		after = page.Next
		read += len(page.Events)
	}
	return seen, true, nil
}

// take adds what an event reports to the chart of its channel.
func (c *Charts) take(at map[channelAt]int, event Event) {
	var reported channelEvent
	var n float64
	if json.Unmarshal(event.Data, &reported) != nil || json.Unmarshal(reported.Value, &n) != nil ||
		string(reported.Value) == "null" {
		return
	}
	if i, ok := at[channelAt{reported.Key, reported.Endpoint}]; ok {
		c.Charts[i].add(event.Time, n)
	}
}

func newChart(c Channel, from, to time.Time) Chart {
	return Chart{
		Key: c.Key, Endpoint: c.Endpoint, Label: c.Label, unit: c.Unit, From: from, To: to,
		highs: make(
			[]float64, chartColumns,
		), lows: make([]float64, chartColumns), lasts: make([]float64, chartColumns),
		minV: math.Inf(1), maxV: math.Inf(-1),
	}
}

// add takes a reading. A column keeps the highest, the lowest and the last of its readings: no peak
// is lost by drawing.
func (c *Chart) add(at time.Time, n float64) {
	if c.Count == 0 {
		for i := range chartColumns {
			c.highs[i], c.lows[i], c.lasts[i] = math.Inf(-1), math.Inf(1), math.NaN()
		}
	}
	span := c.To.Sub(c.From)
	column := int(float64(at.Sub(c.From)) / float64(span) * chartColumns)
	column = max(0, min(chartColumns-1, column))
	c.highs[column], c.lows[column], c.lasts[column] = max(c.highs[column], n), min(c.lows[column], n), n
	c.minV, c.maxV = min(c.minV, n), max(c.maxV, n)
	c.Count++
}

// draw makes the path: a line that steps from reading to reading, as a value holds until the next
// is reported.
func (c *Chart) draw() {
	span := c.maxV/2 - c.minV/2 // halves: the whole may be more than a number can be
	if span == 0 {
		span = 1
	}
	y := func(n float64) float64 {
		return math.Round((chartHeight-4-(n/2-c.minV/2)/span*(chartHeight-8))*10) / 10
	}
	var path strings.Builder
	for i := range chartColumns {
		if math.IsNaN(c.lasts[i]) {
			continue
		}
		x := math.Round(float64(i)*chartWidth/chartColumns*10) / 10
		if path.Len() == 0 {
			fmt.Fprintf(&path, "M%v %v", x, y(c.lows[i]))
		} else {
			fmt.Fprintf(&path, "H%v", x)
		}
		fmt.Fprintf(&path, "V%vV%vV%v", y(c.highs[i]), y(c.lows[i]), y(c.lasts[i]))
		c.Last = c.say(c.lasts[i])
	}
	fmt.Fprintf(&path, "H%v", chartWidth)
	c.Path, c.Low, c.High = path.String(), c.say(c.minV), c.say(c.maxV)
}

func (c *Chart) say(n float64) string {
	return text(c.Key, c.unit, json.RawMessage(strconv.FormatFloat(n, 'f', -1, 64)))
}
