package disk

import (
	"fmt"
	"strconv"
	"strings"
)

// Reserve is the part of a file system that is kept free. The zero value keeps nothing free.
type Reserve struct {
	// Percent is a part of the file system's size, Bytes a number of bytes. If both are set, the
	// smaller reserve counts.
	Percent float64
	Bytes   int64
}

// DefaultReserve is the default reserve: 5 % of the file system, at most 1 GiB.
var DefaultReserve = Reserve{Percent: 5, Bytes: 1 << 30}

// units are the suffixes of sizes. A longer suffix comes before its own ending.
var units = []struct {
	suffix string
	bytes  int64
}{
	{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40},
	{"kB", 1e3}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12},
	{"K", 1 << 10}, {"M", 1 << 20}, {"G", 1 << 30}, {"T", 1 << 40}, {"B", 1},
}

// ParseReserve parses a percentage such as "5%", a size such as "1GiB", "500MB" or a number of
// bytes, or both joined by a comma, of which the smaller counts. "0" keeps nothing free; an empty
// text is DefaultReserve.
func ParseReserve(text string) (Reserve, error) {
	if strings.TrimSpace(text) == "" {
		return DefaultReserve, nil
	}
	var r Reserve
	for part := range strings.SplitSeq(text, ",") {
		part = strings.TrimSpace(part)
		if number, ok := strings.CutSuffix(part, "%"); ok {
			percent, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
			if err != nil || !(percent >= 0 && percent <= 50) || r.Percent > 0 {
				return Reserve{}, fmt.Errorf("%q: a percentage is 0%% to 50%%", text)
			}
			r.Percent = percent
			continue
		}
		bytes, err := parseSize(part)
		if err != nil || r.Bytes > 0 {
			return Reserve{}, fmt.Errorf(
				"%q: a percentage such as 5%%, a size such as 1GiB, or both joined by a comma",
				text,
			)
		}
		r.Bytes = bytes
	}
	return r, nil
}

// parseSize parses a number of bytes, or a number with one of the suffixes of units.
func parseSize(text string) (int64, error) {
	factor := int64(1)
	for _, unit := range units {
		if number, ok := strings.CutSuffix(text, unit.suffix); ok {
			text, factor = strings.TrimSpace(number), unit.bytes
			break
		}
	}
	number, err := strconv.ParseFloat(text, 64)
	if err != nil || !(number >= 0 && number*float64(factor) < 1<<62) {
		return 0, fmt.Errorf("%q: must be a size such as 1GiB or 500MB", text)
	}
	return int64(number * float64(factor)), nil
}

// bytes returns how many bytes to keep free on a file system of that size.
func (r Reserve) bytes(size int64) int64 {
	part := int64(float64(size) / 100 * r.Percent)
	switch {
	case r.Bytes == 0:
		return part
	case r.Percent == 0:
		// A reserve larger than the disk would reject every write.
		return min(r.Bytes, size/2)
	}
	return min(r.Bytes, part)
}

const (
	// filesPercent is the percentage of all files that is kept free, maxFiles the largest reserve
	// of files. A hub's log has about ten files.
	filesPercent = 5
	maxFiles     = 4096
)

// files returns how many files to keep free on a file system with that many; 0 for a file system
// without a limit.
func (r Reserve) files(all int64) int64 {
	if r == (Reserve{}) {
		return 0
	}
	return min(maxFiles, all*filesPercent/100)
}
