package attention

import (
	"time"
)

// Bounds of a record.
const (
	// MaxConditions is how many conditions of an organization are followed at a time; warnings have
	// three quarters of it. MaxUrgent is how many urgent ones are followed besides.
	MaxConditions = 2000
	MaxUrgent     = 1000
	// MaxRecipients is how many members are mailed about a condition: owners first, then admins.
	MaxRecipients = 100
	// MaxListed is how many notices a mail lists.
	MaxListed = 100
	// MaxOutgoing is how many mails wait for the queue, and how many urgent ones besides. Beyond it
	// notices wait.
	MaxOutgoing = 1000
)

const (
	// firstEndHold is the EndHold of a condition that began once in FlapWindow, and maxEndHold the
	// longest one. Each further time makes it endHoldFactor times longer.
	firstEndHold  = 10 * time.Second
	endHoldFactor = 3
	maxEndHold    = 15 * time.Minute
	// FlapWindow is how long a condition that was mailed counts for EndHold.
	FlapWindow = time.Hour
	// DigestDelay is how long the first notice of a digest waits for others.
	DigestDelay = time.Minute
	// GroupPause is the time between two mails about one kind of condition at one site. After
	// groupMails within an hour it is longGroupPause.
	GroupPause     = time.Minute
	groupMails     = 10
	longGroupPause = 5 * time.Minute
)

// StartHold returns how long a condition must stand before it is mailed. People react to smoke at
// once; hubs reconnect, radios recover, and commands are reported late.
func StartHold(kind Kind) time.Duration {
	switch kind {
	case Jammed:
		return 10 * time.Second
	case NotDone, ByHand, Failed:
		return 30 * time.Second
	case Battery, Fault, Service, Warning:
		return time.Minute
	case Offline, NotHeard:
		return 5 * time.Minute
	case Device:
		return 15 * time.Minute
	}
	return 0
}

// EndHold returns how long a condition must not stand before its end is mailed, if it was mailed
// starts times in FlapWindow.
func EndHold(starts int) time.Duration {
	hold := firstEndHold
	for range starts - 1 {
		if hold *= endHoldFactor; hold >= maxEndHold {
			return maxEndHold
		}
	}
	return hold
}
