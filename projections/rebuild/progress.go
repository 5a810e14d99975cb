package rebuild

import "time"

// Progress is the progress of a build.
type Progress struct {
	// Target is the schema that is built. Purpose and Phase are Purpose and Phase constants.
	Target, Purpose, Phase string
	// Sequence is how many events of the directory and commits of the journals the build has, Head
	// how many there are. Commits is how many of Sequence are commits; 0 if Followed.
	Sequence, Head, Commits uint64
	// PerSecond is how many events the build reads in a second; 0 if unknown.
	PerSecond float64
	// Elapsed is the time since the build began.
	Elapsed time.Duration
	// Followed means that another process builds.
	Followed bool
}

// Left returns the estimated time until the build reaches Head; false if unknown.
func (p Progress) Left() (time.Duration, bool) {
	if p.PerSecond <= 0 || p.Sequence > p.Head {
		return 0, false
	}
	return time.Duration(float64(p.Head-p.Sequence) / p.PerSecond * float64(time.Second)), true
}

// speedometer measures how fast a position moves.
type speedometer struct {
	times     [speedSamples]time.Time
	positions [speedSamples]uint64
	count     int
}

const speedSamples = 11 // 5 s of reports

// measure adds a position and returns the speed per second over the last samples; 0 if unknown.
func (s *speedometer) measure(at uint64, now time.Time) float64 {
	if s.count == speedSamples {
		copy(s.times[:], s.times[1:])
		copy(s.positions[:], s.positions[1:])
		s.count--
	}
	s.times[s.count], s.positions[s.count] = now, at
	s.count++
	seconds := now.Sub(s.times[0]).Seconds()
	if seconds <= 0 || at < s.positions[0] {
		return 0
	}
	return float64(at-s.positions[0]) / seconds
}
