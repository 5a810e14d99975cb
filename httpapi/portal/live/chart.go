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
	// chartEvents is the most events that one chart's page reads, chartPage how many at once.
	chartEvents = 20000
	chartPage   = 500
	// chartWidth and chartHeight are the units that charts are drawn in, chartColumns how finely.
	chartWidth, chartHeight = 600.0, 120.0
	chartColumns            = 300
)

// Chart is what a numeric channel reported over a time.
type Chart struct {
	Key      string
	Endpoint int64
	Label    string
	// Path is the line as SVG draws it, in a box of 600 by 120; First and Last are what it begins and ends with, in words, Low and High its bounds.
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
	// Whole is false when the log holds more events than are read for a chart: then they end at Until.
	Whole bool
	Until time.Time
}

// ChartsOf draws what a device's numeric channels reported in the last while. A channel that reported nothing has no chart.
func (l *Live) ChartsOf(ctx context.Context, device Device, last time.Duration) (Charts, error) {
	now := l.Now()
	from := now.Add(-min(last, l.Retention))
	all := Charts{Whole: true, Until: now}
	type channel struct {
		key      string
		endpoint int64
	}
	at := map[channel]int{}
	for _, c := range device.Channels {
		var n float64
		if json.Unmarshal([]byte(c.Value), &n) == nil && c.Value != "null" {
			at[channel{c.Key, c.Endpoint}] = len(all.Charts)
			all.Charts = append(all.Charts, newChart(c, from, now))
		}
	}
	if len(all.Charts) == 0 {
		return all, nil
	}
	after, err := l.Events.At(ctx, device.Hub, from)
	if err != nil {
		return all, err
	}
	mine := fmt.Appendf(nil, `"device_id":%d,`, device.ID)
	for read := 0; ; {
		page, err := l.Events.Page(ctx, device.Hub, after, chartPage)
		if codeOf(err) == domain.CodeCursorExpired && after != "" && read == 0 {
			after = ""
			continue
		}
		if err != nil {
			return all, err
		}
		for _, encoded := range page.Events {
			if !bytes.Contains(encoded.Envelope, mine) {
				continue // most are of other devices: they need no decoding
			}
			event, ok := decode(encoded)
			if !ok || event.Type != "channel.observed" || event.DeviceID == nil || *event.DeviceID != device.ID {
				continue
			}
			var c channelEvent
			var n float64
			if json.Unmarshal(event.Data, &c) != nil || json.Unmarshal(c.Value, &n) != nil || string(c.Value) == "null" {
				continue
			}
			if i, ok := at[channel{c.Key, c.Endpoint}]; ok {
				all.Charts[i].add(event.Time, n)
			}
		}
		read += len(page.Events)
		if !page.HasMore {
			break
		}
		after = page.Next
		if read >= chartEvents {
			all.Whole = false
			if event, ok := decode(page.Events[len(page.Events)-1]); ok {
				all.Until = event.Time
			}
			break
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

func newChart(c Channel, from, to time.Time) Chart {
	return Chart{
		Key: c.Key, Endpoint: c.Endpoint, Label: c.Label, unit: c.Unit, From: from, To: to,
		highs: make([]float64, chartColumns), lows: make([]float64, chartColumns), lasts: make([]float64, chartColumns),
		minV: math.Inf(1), maxV: math.Inf(-1),
	}
}

// add takes a reading. A column keeps the highest, the lowest and the last of its readings: no peak is lost by drawing.
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

// draw makes the path: a line that steps from reading to reading, as a value holds until the next is reported.
func (c *Chart) draw() {
	span := c.maxV - c.minV
	if span == 0 {
		span = 1
	}
	y := func(n float64) float64 { return math.Round((chartHeight-4-(n-c.minV)/span*(chartHeight-8))*10) / 10 }
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
