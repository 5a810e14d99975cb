package server

import "hubcloud/domain"

// The limits that have no flag. Each is far above what a person, a customer or a hub needs, and
// stops a program or a hub in a loop. Further ones are the defaults of the packages that they
// limit. deploy/docs/limits.md has them all.
const (
	// membersPerOrg and keysPerOrg are how many members and API keys in force an organization has
	// at most. Operators may create more keys.
	membersPerOrg, keysPerOrg = 1000, 100
	// commandsPerHour is how many commands an organization sends at one replica. Each leaves two
	// records in its hub's log for a day.
	commandsPerHour = 200_000
	// changesPerHour is how many changes of sites, hubs, names, keys and roles an organization
	// makes at one replica: enough to add 50,000 hubs and move each. The directory keeps each for
	// ever.
	changesPerHour = 120_000
	// preferencesPerDay is how often a member changes its name and mails. The directory keeps each for
	// ever, up to 8 KiB.
	preferencesPerDay = 20
	// orgsPerAccount is how many organizations a person may own who signs up.
	orgsPerAccount = 20
	// alarmMailsPerHour is how many mails about alarms a member gets in any hour, besides urgent
	// ones. Nobody reads more; the last one lists what else has happened.
	alarmMailsPerHour = 20
)

var (
	// hubFacts limits the resets of one hub, and the certificates issued to it: the directory keeps
	// both for ever.
	hubFacts = domain.HubLimit{PerMinute: 4, Burst: 20}
	// hubConnections limits the new connections of one hub. A hub that follows the protocol waits
	// longer after each failure.
	hubConnections = domain.HubLimit{PerMinute: 60, Burst: 60}
)
