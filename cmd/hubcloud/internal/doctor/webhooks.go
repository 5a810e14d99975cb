package doctor

import "context"

// checkWebhooks reports webhooks that fail, and those that were disabled since the service started.
// They are mostly a matter of their organizations: none is a problem of the installation.
func checkWebhooks(_ context.Context, v *visit, f *findings) {
	failing := v.sum("hubcloud_webhook_failing")
	if failing == 0 {
		f.note("no webhook of this replica fails")
	} else {
		f.note(
			"%.0f webhooks of this replica fail (\"webhook fails\" in the log); if all do, the service "+
				"may not reach the internet", failing,
		)
	}
	if n := v.sum("hubcloud_webhook_disabled_total"); n > 0 {
		f.note("%.0f webhooks were disabled since the service started", n)
	}
}
