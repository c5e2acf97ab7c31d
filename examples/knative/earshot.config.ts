import { defineConfig } from 'earshot';

export default defineConfig({
  sinks: {
    knative: {
      webhook: 'http://broker-ingress.knative-eventing.svc.cluster.local/default/default',
      allowHttpTo: ['broker-ingress.knative-eventing.svc.cluster.local'],
      format: 'cloudevents',
      mode: 'binary',
      stacIds: 'catalogue',
    },
  },
});
