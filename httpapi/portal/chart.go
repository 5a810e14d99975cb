package portal

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The size of a chart in SVG units, the margin above and below the line, and the number of columns
// that values are grouped into.
const (
	chartWidth, chartHeight = 600.0, 120.0
	chartMargin             = 4.0
	chartColumns            = 300
)

// chart shows the values that a numeric or boolean channel reported in a period. False is 0, true
// 1.
type chart struct {
	Key      string
	Endpoint int64
	Label    string
	// Path is an SVG path in a box of 600 by 120.
	Path string
	// Low and High are the displayed bounds of all values, Last is the displayed last value.
	Low, High string
	Last      string
	// Count is the number of values.
	Count    int
	From, To time.Time
	// Boolean reports whether the channel's values are true and false.
	Boolean bool

	unit     string
	columns  [chartColumns]chartColumn
	min, max float64
	// scaled reports whether scaleMin and scaleMax are the ends of the scale. Otherwise min and max
	// are.
	scaled             bool
	scaleMin, scaleMax float64
	// latest is the time of the value that was added last.
	latest time.Time
}

// chartColumn has the first, the lowest, the highest and the last of the values of a column, so
// that a chart shows every peak.
type chartColumn struct {
	used                   bool
	first, low, high, last chartPoint
}

// chartPoint is a value and when it was reported.
type chartPoint struct {
	at    time.Time
	value float64
}

func newChart(c deviceChannel, from, to time.Time) *chart {
	chart := &chart{
		Key: c.Key, Endpoint: c.Endpoint, Label: c.Label, unit: c.Unit, From: from, To: to,
		min: math.Inf(1), max: math.Inf(-1),
	}
	switch {
	case c.Value == "true" || c.Value == "false":
		chart.Boolean, chart.scaled, chart.scaleMax = true, true, 1
	case c.Unit == "%" || c.Key == "level" || c.Key == "position":
		chart.scaled, chart.scaleMax = true, 100
	}
	return chart
}

// chartData is a chart for the page's script.
type chartData struct {
	Key      string `json:"key"`
	Endpoint int64  `json:"endpoint"`
	Label    string `json:"label"`
	Unit     string `json:"unit"`
	Boolean  bool   `json:"boolean"`
	// Scale is the lowest and the highest value of a fixed scale; nil if the values decide.
	Scale []float64 `json:"scale"`
	// Times are in seconds since 1970; Values are those reported at these times.
	Times  []float64 `json:"times"`
	Values []float64 `json:"values"`
}

// Data returns the chart for the page's script. It has at most four values of each column.
func (c *chart) Data() chartData {
	data := chartData{
		Key: c.Key, Endpoint: c.Endpoint, Label: c.Label, Unit: truncate(c.unit, longestUnit),
		Boolean: c.Boolean,
	}
	if c.scaled && c.min >= c.scaleMin && c.max <= c.scaleMax {
		data.Scale = []float64{c.scaleMin, c.scaleMax}
	}
	for _, column := range c.columns {
		if !column.used {
			continue
		}
		points := []chartPoint{column.first, column.low, column.high, column.last}
		slices.SortStableFunc(points, func(a, b chartPoint) int { return a.at.Compare(b.at) })
		for _, point := range slices.Compact(points) {
			data.Times = append(data.Times, float64(point.at.UnixMilli())/1000)
			data.Values = append(data.Values, point.value)
		}
	}
	return data
}

// addReport adds the value that a hub reported next. Where the hub's clock does not fit what is
// known, the value has the time at which the cloud learned of it.
func (c *chart) addReport(at, known time.Time, n float64) {
	if at.After(known.Add(time.Minute)) || at.Before(c.latest) {
		at = known
		if at.Before(c.latest) {
			at = c.latest
		}
	}
	c.latest = at
	c.add(at, n)
}

// add adds a value. Values must be added in the order of their times.
func (c *chart) add(at time.Time, n float64) {
	i := int(float64(at.Sub(c.From)) / float64(c.To.Sub(c.From)) * chartColumns)
	column := &c.columns[max(0, min(chartColumns-1, i))]
	point := chartPoint{at, n}
	if !column.used {
		*column = chartColumn{used: true, first: point, low: point, high: point}
	}
	if n < column.low.value {
		column.low = point
	}
	if n > column.high.value {
		column.high = point
	}
	column.last = point
	c.min, c.max = min(c.min, n), max(c.max, n)
	c.Count++
}

// draw sets Path, Low, High and Last. The line has steps, because a value holds until the next
// report.
func (c *chart) draw() {
	low, high := c.min, c.max
	if c.scaled {
		low, high = min(low, c.scaleMin), max(high, c.scaleMax)
	}
	span := high/2 - low/2 // halved: high-low can overflow
	if span == 0 {
		span = 1
	}
	y := func(n float64) float64 {
		return tenths(chartHeight - chartMargin -
			(n/2-low/2)/span*(chartHeight-2*chartMargin))
	}
	var path strings.Builder
	for i, column := range c.columns {
		if !column.used {
			continue
		}
		x := tenths(float64(i) * chartWidth / chartColumns)
		if path.Len() == 0 {
			fmt.Fprintf(&path, "M%v %v", x, y(column.low.value))
		} else {
			fmt.Fprintf(&path, "H%v", x)
		}
		fmt.Fprintf(
			&path, "V%vV%vV%v", y(column.high.value), y(column.low.value), y(column.last.value),
		)
		c.Last = c.format(column.last.value)
	}
	fmt.Fprintf(&path, "H%v", chartWidth)
	c.Path, c.Low, c.High = path.String(), c.format(c.min), c.format(c.max)
}

// tenths rounds to one decimal.
func tenths(n float64) float64 { return math.Round(n*10) / 10 }

func (c *chart) format(n float64) string {
	if c.Boolean {
		return formatValue(c.Key, "", json.RawMessage(strconv.FormatBool(n != 0)))
	}
	return formatValue(c.Key, c.unit, json.RawMessage(strconv.FormatFloat(n, 'f', -1, 64)))
}
