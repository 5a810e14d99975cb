package disk

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"hubcloud/domain"
)

func TestParseReserve(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Reserve{
		"": DefaultReserve, " ": DefaultReserve, "0": {}, "5%": {Percent: 5}, "0.5 %": {Percent: 0.5},
		"1GiB": {Bytes: 1 << 30}, "500MB": {Bytes: 500e6},
		"1048576": {Bytes: 1 << 20}, "64M": {Bytes: 64 << 20}, "1.5 GiB": {Bytes: 3 << 29},
		"5%,1GiB": DefaultReserve, "1GiB, 5%": DefaultReserve, "12B": {Bytes: 12},
	} {
		if got, err := ParseReserve(text); err != nil || got != want {
			t.Errorf("ParseReserve(%q): got %+v, %v, want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{
		"x", "-1", "51%", "-5%", "NaN%", "NaN", "Inf", "5%,6%", "1GiB,2GiB", "1XB", "1e30GiB", ",",
		"%", "5%%",
	} {
		if got, err := ParseReserve(text); err == nil {
			t.Errorf("ParseReserve(%q): got %+v, want an error", text, got)
		}
	}
}

func TestReserveOfASize(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name       string
		reserve    Reserve
		size, want int64
	}{
		{"small disk: the percentage", DefaultReserve, 1000 << 20, 50 << 20},
		{"large disk: 1 GiB", DefaultReserve, 1 << 40, 1 << 30},
		{"bytes only", Reserve{Bytes: 10}, 1000, 10},
		{"more than the disk: half of it", Reserve{Bytes: 5000}, 1000, 500},
		{"nothing", Reserve{}, 1000, 0},
	} {
		if got := c.reserve.bytes(c.size); got != c.want {
			t.Errorf("%s: got %d, want %d", c.name, got, c.want)
		}
	}
}

// TestAdmit checks that nothing is admitted below the reserve, until the margin is free as well.
func TestAdmit(t *testing.T) {
	t.Parallel()
	g := &Guard{reserve: Reserve{Bytes: 100_000}, logger: slog.New(slog.DiscardHandler)}
	began := time.Now()
	for _, c := range []struct {
		name string
		free int64
		low  bool
	}{
		{"much free", 1_000_000, false}, {"at the reserve", 100_000, false},
		{"below", 99_999, true},
		{"at the reserve again", 100_000, true},
		{"within the margin", 104_999, true}, {"beyond it", 105_000, false}, {"none", 0, true},
		{"much free again", 900_000, false},
	} {
		g.update(State{Free: c.free, Size: 1_000_000}, began)
		if got := g.State(); got.Low != c.low || got.Free != c.free || got.Reserve != 100_000 ||
			got.Since.IsZero() == c.low {
			t.Errorf("%s: got %+v, want low %v", c.name, got, c.low)
		}
		err := g.Admit(100)
		var apiError *domain.Error
		low := errors.Is(err, ErrLow) && errors.As(err, &apiError) &&
			apiError.Code == domain.CodeServiceUnavailable && apiError.RetryAfter > 0
		if want := c.low || c.free == 100_000; want != low || want != (err != nil) {
			t.Errorf("%s: Admit: got %v, want an error: %t", c.name, err, want)
		}
	}
	g.SetFailed(true)
	if err := g.Admit(100); !errors.Is(err, ErrLow) || !g.State().Failed {
		t.Errorf("Admit after SetFailed(true): got %v, state %+v, want ErrLow", err, g.State())
	}
	g.SetFailed(false)
	if err := g.Admit(100); err != nil {
		t.Errorf("Admit after SetFailed(false): got %v, want nil", err)
	}
	var none *Guard
	none.SetFailed(true)
	if err := none.Admit(1 << 40); err != nil || none.State() != (State{}) {
		t.Errorf("Admit of a nil Guard: got %v, want nil", err)
	}
}

// A fast writer used up the reserve between two measurements. Now admitted bytes count at once.
func TestAdmittedBytesCount(t *testing.T) {
	t.Parallel()
	g := &Guard{reserve: Reserve{Bytes: 100_000}, logger: slog.New(slog.DiscardHandler)}
	g.update(State{Free: 200_000, Size: 1_000_000}, time.Now())
	admitted := 0
	for g.Admit(1000) == nil {
		if admitted++; admitted > 1000 {
			t.Fatal("Admit rejects nothing")
		}
	}
	if admitted == 0 || admitted*1000 > 100_000 {
		t.Errorf("%d bytes admitted, want at most the 100,000 beyond the reserve", admitted*1000)
	}
	g.update(State{Free: 200_000, Size: 1_000_000}, time.Now())
	if err := g.Admit(1000); err != nil {
		t.Errorf("Admit after another measurement: got %v, want nil", err)
	}
}

// The reserve counted bytes only, so that every new file failed on a disk without free inodes.
func TestFilesAreKeptFree(t *testing.T) {
	t.Parallel()
	var lines bytes.Buffer
	g := &Guard{reserve: DefaultReserve, logger: slog.New(slog.NewTextHandler(&lines, nil))}
	for _, c := range []struct {
		name        string
		free, files int64
		low, logged bool
	}{
		{"no limit of files", 0, 0, false, false},
		{"many", 50_000, 100_000, false, false},
		{"at the reserve", 4096, 100_000, false, false},
		{"below", 4095, 100_000, true, true},
		{"within the margin", 4200, 100_000, true, false},
		{"beyond it", 4301, 100_000, false, true},
		{"a small file system", 500, 10_000, false, false},
		{"a small one, below", 499, 10_000, true, true},
		{"none", 0, 10_000, true, false},
		{"many free", 10_000, 10_000, false, true},
	} {
		lines.Reset()
		g.update(State{Free: 1 << 40, Size: 1 << 40, FreeFiles: c.free, Files: c.files}, time.Now())
		if got := g.State(); got.Low != c.low || got.NoFiles != c.low ||
			got.Since.IsZero() == c.low {
			t.Errorf("%s: got %+v, want low %t", c.name, got, c.low)
		}
		if err := g.Admit(1); c.low != errors.Is(err, ErrLow) ||
			c.low && !strings.Contains(err.Error(), "files") {
			t.Errorf("%s: Admit: got %v, want an error about files: %t", c.name, err, c.low)
		}
		if logged := lines.Len() > 0; logged != c.logged ||
			c.low && logged && !strings.Contains(lines.String(), "files") {
			t.Errorf("%s: logged %q, want a line: %t", c.name, lines.String(), c.logged)
		}
	}
	none := &Guard{logger: slog.New(slog.DiscardHandler)}
	if none.update(State{Free: 1, Size: 1, Files: 100}, time.Now()); none.State().Low {
		t.Error("low without a reserve and without free files: got true, want false")
	}
	g.update(State{Free: 0, Size: 1 << 40, FreeFiles: 0, Files: 10_000}, time.Now())
	if got := g.State(); !got.Low || got.NoFiles {
		t.Errorf("neither bytes nor files free: got %+v, want NoFiles false", got)
	}
}
