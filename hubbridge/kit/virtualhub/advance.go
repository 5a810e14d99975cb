package virtualhub

import (
	"slices"
	"time"

	"hubcloud/domain"
)

// Advance moves the device on to now. It returns the observations for the cloud, in order, and
// whether the device has changed at all.
func (d *device) Advance(now time.Time, s surroundings) (observed []observation, changed bool) {
	reachable := d.Available && s.Radio
	for {
		i := d.nextAction()
		if i < 0 || now.Before(d.actionDue(d.actions[i], s)) {
			break
		}
		a := d.actions[i]
		d.actions = slices.Delete(d.actions, i, i+1)
		changed = true
		if !reachable {
			c := d.Channel(a.ChannelRef)
			if c.ChannelState = c.Abandoned(); c.Status == domain.ChannelFailed {
				observed = append(observed, observation{ChannelRef: a.ChannelRef, Failed: true})
			}
			continue
		}
		observed = append(observed, d.update(d.carryOut(a), now)...)
	}
	if d.sampled(s) && !now.Before(d.nextSample) {
		// The first sample is at a random time within the interval, and each interval varies by a
		// fifth, so that the devices of many hubs do not report in step.
		wait := d.rnd.Float64()
		if !d.nextSample.IsZero() {
			wait = 0.8 + 0.4*wait
			readings := d.kind.sample(d)
			if reachable {
				observed = append(observed, d.update(readings, now)...)
			}
		}
		d.nextSample = now.Add(time.Duration(wait * float64(d.kind.every)))
	}
	return observed, changed || len(observed) > 0
}

// Due returns when to call Advance next; zero means not before the next command or report.
func (d *device) Due(s surroundings) time.Time {
	var due time.Time
	if d.sampled(s) {
		if due = d.nextSample; due.IsZero() {
			due = time.Unix(0, 0) // at once: the first Advance schedules the first sample
		}
	}
	for _, a := range d.actions {
		if t := d.actionDue(a, s); due.IsZero() || t.Before(due) {
			due = t
		}
	}
	return due
}

// sampled reports whether the device makes readings by itself.
func (d *device) sampled(s surroundings) bool { return d.kind.sample != nil && !s.Quiet }

// actionDue returns when a ends: when the device carries it out, or when the hub gives up because
// it cannot reach the device.
func (d *device) actionDue(a action, s surroundings) time.Time {
	if d.Available && s.Radio {
		return a.Due
	}
	return a.Since.Add(s.giveUp())
}

// nextAction returns the index of the earliest action, or -1.
func (d *device) nextAction() int {
	next := -1
	for i, a := range d.actions {
		if next < 0 || a.Due.Before(d.actions[next].Due) {
			next = i
		}
	}
	return next
}

// carryOut carries out a and returns the readings that result from it.
func (d *device) carryOut(a action) []reading {
	if on, ok := a.Value.(bool); ok && d.Jammed {
		return []reading{
			{a.ChannelRef, !on},
			{ChannelRef{Key: "alarm"}, Alarm{Type: a.Key, Event: "jammed", Active: true}},
		}
	}
	v := a.Value
	if c, ok := v.(Color); ok && c.WarmWhite == unchanged {
		c.WarmWhite = 0
		if last, ok := d.Channel(a.ChannelRef).Value.(Color); ok {
			c.WarmWhite = last.WarmWhite
		}
		v = c
	}
	own := reading{a.ChannelRef, v}
	if d.kind.afterCommand == nil {
		return []reading{own}
	}
	return append([]reading{own}, d.kind.afterCommand(d, own)...)
}

// update updates the channels with readings and returns the observations for the cloud. It ignores
// readings of channels that the device does not have.
func (d *device) update(readings []reading, now time.Time) []observation {
	var observed []observation
	for _, r := range readings {
		c := d.Channel(r.ChannelRef)
		if c == nil {
			continue
		}
		next, changed := c.Reported(r.Value, now)
		c.ChannelState = next
		if changed || keys[r.Key].everyReport {
			observed = append(observed, observation{ChannelRef: r.ChannelRef, Value: r.Value})
		}
	}
	return observed
}
