package live

import (
	"encoding/json"
	"fmt"
	"math"
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

// Chart shows the values that a numeric channel reported in a period.
type Chart struct {
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

	unit     string
	columns  [chartColumns]chartColumn
	min, max float64
}

// chartColumn has the bounds and the last of the values of a column, so that a chart shows every
// peak.
type chartColumn struct {
	used            bool
	low, high, last float64
}

func newChart(c Channel, from, to time.Time) *Chart {
	return &Chart{
		Key: c.Key, Endpoint: c.Endpoint, Label: c.Label, unit: c.Unit, From: from, To: to,
		min: math.Inf(1), max: math.Inf(-1),
	}
}

// add adds a value. Values must be added in the order of their times.
func (c *Chart) add(at time.Time, n float64) {
	i := int(float64(at.Sub(c.From)) / float64(c.To.Sub(c.From)) * chartColumns)
	column := &c.columns[max(0, min(chartColumns-1, i))]
	if !column.used {
		*column = chartColumn{used: true, low: n, high: n}
	}
	column.low, column.high, column.last = min(column.low, n), max(column.high, n), n
	c.min, c.max = min(c.min, n), max(c.max, n)
	c.Count++
}

// draw sets Path, Low, High and Last. The line has steps, because a value holds until the next
// report.
func (c *Chart) draw() {
	span := c.max/2 - c.min/2 // halved: max-min can overflow
	if span == 0 {
		span = 1
	}
	y := func(n float64) float64 {
		return tenths(chartHeight - chartMargin -
			(n/2-c.min/2)/span*(chartHeight-2*chartMargin))
	}
	var path strings.Builder
	for i, column := range c.columns {
		if !column.used {
			continue
		}
		x := tenths(float64(i) * chartWidth / chartColumns)
		if path.Len() == 0 {
			fmt.Fprintf(&path, "M%v %v", x, y(column.low))
		} else {
			fmt.Fprintf(&path, "H%v", x)
		}
		fmt.Fprintf(&path, "V%vV%vV%v", y(column.high), y(column.low), y(column.last))
		c.Last = c.format(column.last)
	}
	fmt.Fprintf(&path, "H%v", chartWidth)
	c.Path, c.Low, c.High = path.String(), c.format(c.min), c.format(c.max)
}

// tenths rounds to one decimal.
func tenths(n float64) float64 { return math.Round(n*10) / 10 }

func (c *Chart) format(n float64) string {
	return formatValue(c.Key, c.unit, json.RawMessage(strconv.FormatFloat(n, 'f', -1, 64)))
}
