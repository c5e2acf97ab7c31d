/** `earshot alerts`: what is wrong, or was. */
import { Command } from 'commander';
import type { AlertFlags } from '../alerts/show-alerts.ts';
import type { Io } from '../io.ts';
import { limitOption } from '../shared-flags.ts';

export function alertsCommand(io: Io): Command {
  return new Command('alerts')
    .description('Show active alerts, each with its cause and what to do.')
    .option('--all', 'also those that are resolved')
    .addOption(limitOption({ of: 'alerts' }).default(100))
    .option('--json', 'as JSON: see below')
    .option('--test', 'send a test alert to EARSHOT_ALERT_URL and EARSHOT_ALERT_COMMAND')
    .addHelpText(
      'after',
      `
The receiver checks every minute: a subscription that is silent for longer than its usual rate
explains, more lost pushes than usual, events that are missing or could not be compared, a
subscription that will be paused or cancelled or does not run, a certificate near its end, a disk
that fills up, notifications that cannot be stored, a sink that takes nothing. Each alert is raised
once, and resolved once; both are sent to EARSHOT_ALERT_URL and EARSHOT_ALERT_COMMAND. Standard
error has what could not be sent, and whether a receiver runs.

--json: id kind subject severity cause evidence nextStep raisedAt resolvedAt.

Exit codes: 0 done, 1 failed, 2 wrong usage or configuration.

Examples:
  $ earshot alerts
  $ earshot alerts --all --limit 20
  $ earshot alerts --test`,
    )
    .action(async (flags: AlertFlags) => {
      const { showAlerts } = await import('../alerts/show-alerts.ts');
      await showAlerts(io, flags);
    });
}
