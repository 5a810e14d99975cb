package streams

import "fmt"

// AccountTap is the account in which `hubcloud tap` reads hub logs with the service's own
// credentials. The account has no streams. It imports the feeds of all shards, CompleteViews, and the
// read-only part of each shard's JetStream API under the prefix ShardAPI.
const AccountTap Account = "TAP"

// MaxTaps is the most tap credentials that an installation can have. Each has an account of its
// own, TapAccount, with the same imports as AccountTap.
//
// Separate accounts keep taps from forging messages for each other. The server sends the answer to
// a request to any reply subject that the requester names, whatever its permissions. In a shared
// account a tap could therefore send an answer to another tap's inbox, or as a message of a feed.
// Answers never leave the requester's account, and within it NoFeed keeps them off the feeds.
const MaxTaps = 16

// TapAccount returns the account of the tap credentials with a number from 0 to MaxTaps - 1.
func TapAccount(i int) Account { return Account(fmt.Sprintf("TAP%02d", i)) }

// TapAccounts returns AccountTap and the accounts of all tap credentials.
func TapAccounts() []Account {
	accounts := []Account{AccountTap}
	for i := range MaxTaps {
		accounts = append(accounts, TapAccount(i))
	}
	return accounts
}

// NoFeed is the subject to which a tap's account maps messages that are published on a feed's
// subject within the account, such as an answer to a forged reply subject. No user may subscribe to
// it. The mapping does not apply to messages imported from shards.
const NoFeed = "no-feed.>"

// AnyFeed matches the feeds of all hubs: the service publishes each message of a hub log there
// once it is stored.
const AnyFeed = "feed.>"

// CompleteViews is the subject of a request without content in a shard's account. The process that
// writes the shard's hub logs answers without content once they have everything that was stored
// before the request, or with the text of an error. Taps import it as CompleteViewsOf.
const CompleteViews = "views.complete"

// CompleteViewsOf returns the subject of CompleteViews of a shard in the accounts of taps.
func CompleteViewsOf(shard int) string { return ShardAPI(shard) + ".COMPLETE" }

// ShardAPI returns the prefix under which tap accounts import a shard's JetStream API. It replaces
// $JS.API: requests go to <ShardAPI>.STREAM.INFO.… instead of $JS.API.STREAM.INFO.….
func ShardAPI(i int) string { return fmt.Sprintf("shard.%02d", i) }

// ReadOnly returns the requests of the JetStream API that tap accounts import, with subjects
// without the prefix. A tap cannot make any other: it cannot write, and cannot create consumers.
func ReadOnly() []ReadOnlyRequest {
	return []ReadOnlyRequest{
		{Subject: "STREAM.NAMES"},
		{Subject: "STREAM.LIST"},
		{Subject: "STREAM.INFO.*"},
		{Subject: "STREAM.MSG.GET.*"},
		{Subject: "DIRECT.GET.*", Streamed: true},
		{Subject: "DIRECT.GET.*.>"},
	}
}

// ReadOnlyRequest is a request of the JetStream API that changes nothing.
type ReadOnlyRequest struct {
	Subject string
	// Streamed reports that a request may have several answers.
	Streamed bool
}

// Permissions are the subjects that a user of the broker may publish and subscribe to. Deny has
// subjects that the user may not publish to, even if Publish matches them.
type Permissions struct {
	Publish, Deny, Subscribe []string
}

// TapInbox returns the inbox prefix of a tap's user.
func TapInbox(user string) string { return "_INBOX." + user }

// TapPermissions returns the permissions of a tap's user: to subscribe to the feeds and to its own
// inbox, to have hub logs completed, and to make the requests of ReadOnly. The server's streams of
// MQTT sessions, which are in the same accounts as hub logs, are denied by name.
func TapPermissions(user string) Permissions {
	p := Permissions{
		Publish: []string{"shard.*.COMPLETE"}, Subscribe: []string{AnyFeed, TapInbox(user) + ".>"},
	}
	for _, request := range ReadOnly() {
		p.Publish = append(p.Publish, "shard.*."+request.Subject)
	}
	for _, stream := range []string{
		"$MQTT_sess", "$MQTT_msgs", "$MQTT_rmsgs", "$MQTT_qos2in", "$MQTT_out",
	} {
		p.Deny = append(p.Deny, "shard.*.STREAM.INFO."+stream, "shard.*.STREAM.MSG.GET."+stream,
			"shard.*.DIRECT.GET."+stream, "shard.*.DIRECT.GET."+stream+".>")
	}
	return p
}
